"""What notebooks show without measuring it: small tables, each made by one module here."""
