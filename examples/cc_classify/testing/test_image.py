"""The C++ reader of pictures agrees with Pillow, and refuses what it can't read."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

IMAGE_TOOL = Path(os.environ["RUNFILES_DIR"], os.environ["IMAGE_TOOL"])
PICTURES = {
    path.stem: path
    for path in (Path(os.environ["RUNFILES_DIR"], name) for name in os.environ["PICTURES"].split())
}
Pixels = NDArray[np.uint8]


def tool(*arguments: object) -> bytes:
    return subprocess.run(
        [IMAGE_TOOL, *map(str, arguments)], check=True, capture_output=True
    ).stdout


def pixels_of(output: bytes) -> Pixels:
    size, pixels = output.split(b"\n", 1)
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def read(path: Path) -> Pixels:
    return pixels_of(tool("pixels", path))


def error_of(path: Path) -> str:
    run = subprocess.run([IMAGE_TOOL, "pixels", path], capture_output=True, text=True, check=False)
    assert run.returncode == 1, run
    assert run.stdout == ""
    assert run.stderr.startswith(f"{path}: ")
    return run.stderr


def reference(path: Path) -> Pixels:
    """What Pillow reads, transparent pixels over white."""
    rgba = np.asarray(Image.open(path).convert("RGBA")).astype(np.int64)
    color, alpha = rgba[..., :3], rgba[..., 3:]
    return ((color * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    rows: bytes, width: int, height: int, *, depth: int = 8, color: int = 0, interlace: int = 0
) -> bytes:
    """A PNG file of rows that have their filter bytes."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.fixture(name="random_rgb", scope="module")
def _random_rgb() -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_real_pictures(name: str) -> None:
    np.testing.assert_array_equal(read(PICTURES[name]), reference(PICTURES[name]))


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P"])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_every_kind_of_color(tmp_path: Path, mode: str, level: int) -> None:
    # Noise beside a flat area: stored, fixed and dynamic blocks, literals and copies.
    noise = np.random.default_rng(1).integers(0, 256, (61, 47, 4), dtype=np.uint8)
    noise[20:, 10:] = (1, 2, 3, 128)
    path = tmp_path / "picture.png"
    picture = Image.fromarray(noise, "RGBA").convert("RGB" if mode == "P" else mode)
    if mode == "P":
        picture = picture.quantize(200)
        picture.info["transparency"] = bytes([0, 128, 255])
        picture.save(path, bits=8, compress_level=level, transparency=bytes([0, 128, 255]))
    else:
        picture.save(path, compress_level=level)
    np.testing.assert_array_equal(read(path), reference(path))


@settings(max_examples=100)
@given(
    width=st.integers(1, 9),
    filters=st.lists(st.integers(0, 4), min_size=1, max_size=9),
    color=st.sampled_from([0, 2, 4, 6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_filter(
    tmp_path_factory: pytest.TempPathFactory, width: int, filters: list[int], color: int, seed: int
) -> None:
    row_bytes = width * {0: 1, 2: 3, 4: 2, 6: 4}[color]
    generator = np.random.default_rng(seed)
    rows = b"".join(bytes([f]) + generator.bytes(row_bytes) for f in filters)
    path = tmp_path_factory.mktemp("filter") / "picture.png"
    path.write_bytes(png(rows, width, len(filters), color=color))
    np.testing.assert_array_equal(read(path), reference(path))


def test_ppm_and_pgm(tmp_path: Path, random_rgb: Pixels) -> None:
    path = tmp_path / "picture.ppm"
    Image.fromarray(random_rgb).save(path)
    np.testing.assert_array_equal(read(path), random_rgb)

    path = tmp_path / "picture.pgm"
    path.write_bytes(b"P5 # a comment\n#another\n 2\t2 255\n\x00\x20\xff\x0a")
    assert read(path)[..., 0].tolist() == [[0, 32], [255, 10]]


@pytest.mark.parametrize("size", [(100, 80), (53, 37), (20, 90), (1, 1)])
def test_resize_is_pillows(tmp_path: Path, size: tuple[int, int], random_rgb: Pixels) -> None:
    path = tmp_path / "picture.png"
    Image.fromarray(random_rgb).save(path)
    expected = np.asarray(Image.fromarray(random_rgb).resize(size, Image.Resampling.BICUBIC))
    difference = pixels_of(tool("resize", path, *size)).astype(int) - expected
    # Pillow rounds between the two passes, and clips there too.
    assert np.abs(difference).mean() < 1
    smooth = Image.open(PICTURES["chelsea"]).convert("RGB")
    expected = np.asarray(smooth.resize(size, Image.Resampling.BICUBIC))
    difference = pixels_of(tool("resize", PICTURES["chelsea"], *size)).astype(int) - expected
    assert np.abs(difference).max() <= 2


def test_model_input() -> None:
    values = np.frombuffer(tool("input", PICTURES["chelsea"]), np.float32).reshape(3, 224, 224)
    picture = Image.open(PICTURES["chelsea"]).convert("RGB")  # 451 x 300; 300 * 224 / 256 = 262.5
    left, top = (451 - 263) // 2, (300 - 263) // 2
    cropped = picture.crop((left, top, left + 263, top + 263))
    resized = cropped.resize((224, 224), Image.Resampling.BICUBIC)
    expected = (np.asarray(resized).astype(np.float32).transpose(2, 0, 1) - 127) / 128
    assert np.abs(values - expected).max() <= 2 / 128


def write(folder: Path, content: bytes) -> Path:
    path = folder / "picture"
    path.write_bytes(content)
    return path


def test_refuses_other_formats(tmp_path: Path, random_rgb: Pixels) -> None:
    jpeg = io.BytesIO()
    Image.fromarray(random_rgb).save(jpeg, "JPEG")
    assert "this is a JPEG file: convert it to PNG" in error_of(write(tmp_path, jpeg.getvalue()))
    assert "convert it to PNG" in error_of(write(tmp_path, b"GIF89a"))
    assert "can't read the file" in error_of(write(tmp_path, b""))
    assert "can't open the file" in error_of(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (png(b"\0" * 3, 1, 1, depth=16), "16 bits per sample; only 8 are supported"),
        (png(b"\0\0", 1, 1, interlace=1), "interlaced, which is not supported"),
        (png(b"\0\0", 1, 1, color=5), "bad header"),
        (png(b"\0\0", 0, 1), "the size is 0 x 1"),
        (png(b"\0\0", 2**31 - 1, 2**31 - 1), "the size is"),
        (png(b"\0\0", 1, 2), "too few pixels"),
        (png(b"\0" * 5, 1, 2), "more data than expected"),
        (png(b"\5\0", 1, 1), "unknown filter 5"),
        (png(b"\0\0", 1, 1, color=3), "not in the palette"),
        (png(b"\0\0", 1, 1).replace(b"IDAT", b"IDAU"), "damaged (checksum)"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", b""), "the header is missing"),
        (b"\x89PNG\r\n\n", "no PNG signature"),
        (b"P6 2 2 255\n\0\0", "12 bytes of pixels expected, the file has 2"),
        (b"P6 2 2 65535\n", "the greatest value is 65535, must be 255"),
        (b"P6 -2 2 255\n", "bad header"),
        (b"P5", "bad header"),
    ],
)
def test_refuses_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in error_of(write(tmp_path, content))


def test_refuses_every_shorter_file(tmp_path: Path) -> None:
    whole = png(b"\0\1\2\0\3\4", 2, 2)
    for size in range(1, len(whole)):
        error_of(write(tmp_path, whole[:size]))


@settings(max_examples=200)
@given(data=st.binary(max_size=60))
def test_survives_any_compressed_data(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    header = struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"\x78\x9c" + data)
    path = tmp_path_factory.mktemp("any") / "picture.png"
    path.write_bytes(content + chunk(b"IEND", b""))
    run = subprocess.run([IMAGE_TOOL, "pixels", path], capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stderr  # an error or a picture, but no crash
