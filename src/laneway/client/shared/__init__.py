"""What both clients share: checks, drafts, options. Nothing here waits for anything."""
