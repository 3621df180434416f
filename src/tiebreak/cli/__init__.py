"""The command line: `app` holds the commands, the other modules what they call."""
