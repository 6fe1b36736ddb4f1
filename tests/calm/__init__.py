"""False alarms: an agent beside work that is heavy and healthy, its alerts counted by rule (``make calm``)."""
