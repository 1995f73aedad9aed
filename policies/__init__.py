"""What may be decided, what is legal, and when it is asked. The ground that every other package
stands on."""
