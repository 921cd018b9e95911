"""OpenAPI documents, read into operations."""
