"""JSON Schema: checks of schemas, compiled validators, messages of findings. Pure, except for `store`."""
