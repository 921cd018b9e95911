"""The store in PostgreSQL, for any number of machines. Nothing else imports `psycopg`."""
