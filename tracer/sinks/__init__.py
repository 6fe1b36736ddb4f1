"""Where alerts go. A slow or dead sink delays neither another nor the watch."""
