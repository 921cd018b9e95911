"""HTTP APIs as tools: gateways, operations, OpenAPI documents."""
