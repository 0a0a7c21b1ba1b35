"""What notebooks show of the published model without running it: small tables, each made by one module here."""
