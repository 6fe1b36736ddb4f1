"""Windows in, values out: statistics and a verdict. No I/O, no root."""
