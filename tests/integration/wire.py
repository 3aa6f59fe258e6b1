"""Protobuf by hand: a second implementation of the wire format, so that a wrong field number in our .proto files shows.

Messages are written as lists of (field number, value) and read as {field number: [values]}; the numbers in the tests come
from the public interface descriptions, not from proto/.
"""

import struct


# Of one byte and of two, which nearly all are: looked up, they cost a quarter.
SHORT = [bytes([n]) if n < 0x80 else bytes([n & 0x7F | 0x80, n >> 7]) for n in range(1 << 14)]


def varint(n):
    if 0 <= n < 1 << 14:
        return SHORT[n]
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(fields):
    """[(number, int | float | bytes | str | list)] -> bytes; a list is a nested message, ("packed", [ints]) packed ints,
    ("fixed64", int) an integer of eight bytes."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):  # bool is one
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
            continue
        if isinstance(value, tuple) and value[0] == "fixed64":
            out += varint(number << 3 | 1) + struct.pack("<Q", value[1])
            continue
        if isinstance(value, str):
            value = value.encode()
        elif isinstance(value, tuple) and value[0] == "packed":
            value = b"".join(varint(v) for v in value[1])
        elif isinstance(value, list):
            value = encode(value)
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def read_varint(data, at):
    if data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def decode(data):
    """bytes -> {number: [raw values]}: ints for varints, floats for doubles, bytes for the rest."""
    fields = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 1:
            value = struct.unpack_from("<d", data, at)[0]
            at += 8
        elif kind == 2:
            size, at = read_varint(data, at)
            value = data[at : at + size]
            assert len(value) == size, "cut message"
            at += size
        else:
            raise AssertionError("wire type %d" % kind)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def signed(n):
    return n - (1 << 64) if n >= 1 << 63 else n


def ints(values):
    """All integers of a repeated field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        n = shift = 0
        for byte in value:  # read_varint, but for long fields
            n |= (byte & 0x7F) << shift
            if byte < 0x80:
                out.append(n if n < 1 << 63 else n - (1 << 64))
                n = shift = 0
            else:
                shift += 7
        assert shift == 0, "cut packed field"
    return out


def texts(values):
    return [v.decode() for v in values]
