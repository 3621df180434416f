"""Many runs trained as one computation."""
