"""The process on another host that receives alerts and windows, and notices nodes that fall silent."""
