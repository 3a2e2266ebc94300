"""All of ours that lives in the sandbox. Nothing here is secret and nothing here is trusted."""
