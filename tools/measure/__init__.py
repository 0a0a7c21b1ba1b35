"""Measurements that notebooks show and do not repeat: small tables, each made by one module here."""
