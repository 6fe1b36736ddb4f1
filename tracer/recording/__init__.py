"""Recordings: windows to bytes and back, as a ``.fsk`` file or as frames of a stream.

``docs/recording-format.md`` is the format; nothing here needs root, and nothing here trusts what it reads.
"""

from __future__ import annotations

from tracer.recording.codec import FrameDecoder, FrameEncoder
from tracer.recording.frames import Frame, FrameCut, Kind, read_frame
from tracer.recording.paths import expand_path
from tracer.recording.reader import Recording, RecordingReader, Run, count_intervals, read_recording
from tracer.recording.writer import RecordingWriter

__all__ = [
    "Frame",
    "FrameCut",
    "FrameDecoder",
    "FrameEncoder",
    "Kind",
    "Recording",
    "RecordingReader",
    "RecordingWriter",
    "Run",
    "count_intervals",
    "expand_path",
    "read_frame",
    "read_recording",
]
