"""One rule per question: a pure function from a summary to an outcome."""
