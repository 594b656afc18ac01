"""What the suite stands on: a PostgreSQL, a browser, a model and a running HelmDash."""
