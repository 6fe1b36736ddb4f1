"""One HTML file of a recording: what it holds is gathered here in bounded memory, what it looks like is in web/."""
