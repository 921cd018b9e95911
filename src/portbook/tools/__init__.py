"""Tools, resources and prompts: their declarations, their schemas, and the catalog that finds them."""
