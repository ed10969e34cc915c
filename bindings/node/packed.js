'use strict'

// Packed byte strings: the length in four bytes, little-endian, then the bytes. `src/packed.rs` is the other side.

const ABSENT = 0xffffffff
const DELETE = 0
const PUT = 1
const FIRST_SIZE = 4096
/** A buffer that a large batch has enlarged is kept up to this size. */
const KEPT_SIZE = 1 << 20
const SIZE_MAX = 1 << 30
/** Up to this length the engine of JavaScript copies ASCII faster than a call of `Buffer` does. */
const SHORT_TEXT = 32

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

  /** Adds an operation of a batch. */
  put (key, value) {
    check(key)
    check(value)
    return this.#byte(PUT).add(key).add(value)
  }

  /** Adds an operation of a batch. */
  del (key) {
    check(key)
    return this.#byte(DELETE).add(key)
  }

  /** Adds a string or bytes with their length. */
  add (data) {
    check(data)
    const start = this.length
    this.#reserve(4)
    this.length += 4
    this.raw(data)
    this.buffer.writeUInt32LE(this.length - start - 4, start)
    return this
  }

  /** Adds a string or bytes without their length. */
  raw (data) {
    check(data)
    if (typeof data === 'string') {
      this.#reserve(data.length * 3)
      if (!this.#shortAscii(data)) this.length += this.buffer.write(data, this.length)
    } else {
      this.#reserve(data.byteLength)
      this.buffer.set(data, this.length)
      this.length += data.byteLength
    }
    return this
  }

  /** Adds what `pack` adds, with its length; nothing if it throws. */
  nested (pack) {
    const start = this.length
    this.#reserve(4)
    this.length += 4
    try {
      pack(this)
    } catch (error) {
      this.length = start
      throw error
    }
    this.buffer.writeUInt32LE(this.length - start - 4, start)
  }

  /** Adds the range of an iterator: for each bound its kind and its key. */
  range ({ gte, gt, lte, lt }) {
    for (const [inclusive, exclusive] of [[gte, gt], [lte, lt]]) {
      if (inclusive !== undefined) this.#byte(1).add(inclusive)
      else if (exclusive !== undefined) this.#byte(2).add(exclusive)
      else this.#byte(0).add('')
    }
    return this
  }

  /** A copy of the content. */
  copy () {
    return Buffer.from(this.buffer.subarray(0, this.length))
  }

  #byte (value) {
    this.#reserve(1)
    this.buffer[this.length++] = value
    return this
  }

  /** Adds a short text of ASCII; returns `false` for others. */
  #shortAscii (text) {
    if (text.length > SHORT_TEXT) return false
    const { buffer, length } = this
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code > 127) return false
      buffer[length + index] = code
    }
    this.length += text.length
    return true
  }

  #reserve (size) {
    const needed = this.length + size
    if (needed <= this.buffer.length) return
    if (needed > SIZE_MAX) throw new RangeError('The batch has more than 1 GiB: split it')
    const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(needed, 2 * this.buffer.length), SIZE_MAX))
    this.buffer.copy(larger, 0, 0, this.length)
    this.buffer = larger
  }
}

function check (data) {
  if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
    throw new TypeError(`An encoding must return a string, a Buffer or a Uint8Array, not ${typeof data}`)
  }
}

/** Reads packed byte strings one after the other, as strings or as buffers. */
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
    if (isText) return this.buffer.toString('utf8', start, end)
    // A copy: a part would keep all of the buffer in memory.
    const copy = Buffer.allocUnsafe(length)
    this.buffer.copy(copy, 0, start, end)
    return copy
  }
}

exports.Packer = Packer
exports.Unpacker = Unpacker
