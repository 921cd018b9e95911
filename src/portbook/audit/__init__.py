"""Records: what they hold, how they are chained, and the files they are kept in."""
