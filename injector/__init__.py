"""Context before each response, the gateway and the hooks."""
