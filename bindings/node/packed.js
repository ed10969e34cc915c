'use strict'

// Packed byte strings: the length in four bytes, little-endian, then the bytes. `src/packed.rs` is the other side.

const ABSENT = 0xffffffff
const FIRST_SIZE = 4096
/** A buffer that a large batch has enlarged is kept up to this size. */
const KEPT_SIZE = 1 << 20

/** Packs strings and bytes into a buffer that it reuses: the native module copies them before a call returns. */
class Packer {
  constructor (size = FIRST_SIZE) {
    this.buffer = Buffer.allocUnsafeSlow(size)
    this.length = 0
  }

  /** Removes all content. */
  restart () {
    this.length = 0
    if (this.buffer.length > KEPT_SIZE) this.buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
    return this
  }

  /** Adds a byte. */
  byte (value) {
    this.#reserve(1)
    this.buffer[this.length++] = value
    return this
  }

  /** Adds a string or bytes with their length. */
  add (data) {
    const start = this.length
    this.#reserve(4)
    this.length += 4
    this.raw(data)
    this.buffer.writeUInt32LE(this.length - start - 4, start)
    return this
  }

  /** Adds a string or bytes without their length. */
  raw (data) {
    if (typeof data === 'string') {
      this.#reserve(data.length * 3)
      this.length += this.buffer.write(data, this.length)
    } else if (data instanceof Uint8Array) {
      this.#reserve(data.byteLength)
      this.buffer.set(data, this.length)
      this.length += data.byteLength
    } else {
      throw new TypeError(`An encoding must return a string, a Buffer or a Uint8Array, not ${typeof data}`)
    }
    return this
  }

  /** Adds the range of an iterator. */
  range (options) {
    this.#bound(options.gte, options.gt)
    this.#bound(options.lte, options.lt)
    return this
  }

  #bound (inclusive, exclusive) {
    if (inclusive !== undefined) this.byte(1).add(inclusive)
    else if (exclusive !== undefined) this.byte(2).add(exclusive)
    else this.byte(0).add('')
  }

  #reserve (size) {
    const needed = this.length + size
    if (needed <= this.buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.buffer.length))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }
}

/** Reads packed byte strings one after the other, as strings or as parts of the buffer. */
class Unpacker {
  constructor (buffer, position = 0) {
    this.buffer = buffer
    this.position = position
  }

  get isEmpty () {
    return this.position >= this.buffer.length
  }

  /** The next string or bytes; `undefined` if it is absent. */
  next (isText) {
    const start = this.position + 4
    const length = this.buffer.readUInt32LE(this.position)
    if (length === ABSENT) {
      this.position = start
      return undefined
    }
    const end = this.position = start + length
    return isText ? this.buffer.toString('utf8', start, end) : this.buffer.subarray(start, end)
  }
}

exports.Packer = Packer
exports.Unpacker = Unpacker
