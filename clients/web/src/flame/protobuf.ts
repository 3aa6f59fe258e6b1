// The part of protobuf's wire format that answers and exports need.

export class Reader {
  private at: number;
  private readonly end: number;

  constructor(
    private readonly bytes: Uint8Array,
    from = 0,
    to = bytes.length,
  ) {
    this.at = from;
    this.end = to;
  }

  get isDone(): boolean {
    return this.at >= this.end;
  }

  get rest(): number {
    return this.end - this.at;
  }

  /** All that is left as int64s, of which `into` has room for every byte; returns how many there were. */
  varints(into: Float64Array): number {
    let n = 0;
    while (this.at < this.end) {
      into[n++] = this.varint();
    }
    return n;
  }

  /** An int64 as a number; exact to 2^53, which is 104 days of nanoseconds. */
  varint(): number {
    // Most numbers of an answer are small.
    if (this.at < this.end && this.bytes[this.at]! < 0x80) {
      return this.bytes[this.at++]!;
    }
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) {
        throw new Error("the answer ends within a number");
      }
      const byte = this.bytes[this.at++]!;
      const seven = byte & 0x7f;
      if (shift < 28) {
        low |= seven << shift;
      } else if (shift === 28) {
        low |= (seven & 0x0f) << 28;
        high = seven >>> 4;
      } else if (shift < 63) {
        high |= seven << (shift - 32);
      } else {
        high |= (seven & 1) << 31;
      }
      if (byte < 0x80) {
        return (high | 0) * 4294967296 + (low >>> 0);
      }
    }
    throw new Error("a number of the answer is longer than 64 bits");
  }

  /** The next tag: field number and wire type. */
  tag(): { field: number; wire: number } {
    const value = this.varint();
    return { field: Math.floor(value / 8), wire: value & 7 };
  }

  private fixed(n: 4 | 8): DataView {
    if (this.end - this.at < n) {
      throw new Error("the answer ends within a number");
    }
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, n);
    this.at += n;
    return view;
  }

  float(): number {
    return this.fixed(4).getFloat32(0, true);
  }

  double(): number {
    return this.fixed(8).getFloat64(0, true);
  }

  private length(): number {
    const n = this.varint();
    if (n < 0 || n > this.end - this.at) {
      throw new Error("the answer ends within a field");
    }
    return n;
  }

  /** A reader of an embedded message or a packed list. */
  message(): Reader {
    const n = this.length();
    const inner = new Reader(this.bytes, this.at, this.at + n);
    this.at += n;
    return inner;
  }

  text(decoder: TextDecoder): string {
    const n = this.length();
    const text = decoder.decode(this.bytes.subarray(this.at, this.at + n));
    this.at += n;
    return text;
  }

  skip(wire: number): void {
    if (wire === 0) {
      this.varint();
    } else if (wire === 2) {
      this.message();
    } else if (wire === 1 || wire === 5) {
      this.fixed(wire === 1 ? 8 : 4);
    } else {
      throw new Error("the answer has a field of an unknown kind");
    }
  }
}

/** Writes into one growing array: a profile is too long for a list of numbers. */
export class Writer {
  private bytes = new Uint8Array(1024);
  private n = 0;

  varint(value: number): void {
    this.reserve(10);
    for (; value >= 128; value = Math.floor(value / 128)) {
      this.bytes[this.n++] = (value % 128) | 128;
    }
    this.bytes[this.n++] = value;
  }

  number(field: number, value: number): void {
    this.varint(8 * field);
    this.varint(value);
  }

  field(field: number, content: Uint8Array | Writer): void {
    const bytes = content instanceof Writer ? content.done() : content;
    this.varint(8 * field + 2);
    this.varint(bytes.length);
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.n);
    this.n += bytes.length;
  }

  private reserve(more: number): void {
    if (this.n + more > this.bytes.length) {
      const larger = new Uint8Array(2 * this.bytes.length + more);
      larger.set(this.bytes);
      this.bytes = larger;
    }
  }

  /** What was written so far. */
  done(): Uint8Array {
    return this.bytes.subarray(0, this.n);
  }
}
