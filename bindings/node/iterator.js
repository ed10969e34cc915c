'use strict'

// Iterators over chunks that the native module reads on the thread pool.
//
// The first chunk has one entry, because programs often want only one, also after a seek; later chunks grow.

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level')
const ModuleError = require('module-error')
const { Packer, Unpacker } = require('./packed')

const CHUNK_GROWTH = 16
const CHUNK_ENTRIES_MAX = 4096
const CHUNK_BYTES = 32 << 10
/** Bytes of a chunk of which the program has asked for the number of entries. */
const ASKED_CHUNK_BYTES = 256 << 10

const BOTH = 0
const KEYS = 1
const VALUES = 2

const packer = new Packer()
const empty = new Unpacker(Buffer.alloc(0))

/** An iterator class: `take` reads an item from a chunk. */
function iteratorClass (Base, take) {
  return class extends Base {
    #scan
    #signal
    #chunk = empty
    #chunkEntries = 1
    #isFinished = false

    constructor (db, options, scan) {
      super(db, options)
      this.#scan = scan
      this.#signal = options.signal
      this.isTextKey = options.keyEncoding === 'utf8'
      this.isTextValue = options.valueEncoding === 'utf8'
      this.parts = partsOf(Base, options)
      if (this.limit < Infinity) this.#chunkEntries = Math.min(Math.max(this.limit, 1), CHUNK_ENTRIES_MAX)
    }

    async _next () {
      if (this.#chunk.isEmpty) {
        const entries = Math.min(this.#chunkEntries, this.limit - this.count)
        this.#chunkEntries = Math.min(this.#chunkEntries * CHUNK_GROWTH, CHUNK_ENTRIES_MAX)
        await this.#read(entries, CHUNK_BYTES)
        if (this.#chunk.isEmpty) return undefined
      }
      return take(this.#chunk, this)
    }

    async _nextv (size) {
      if (this.#chunk.isEmpty) await this.#read(Math.min(size, CHUNK_ENTRIES_MAX), ASKED_CHUNK_BYTES)
      const items = []
      while (items.length < size && !this.#chunk.isEmpty) items.push(take(this.#chunk, this))
      return items
    }

    async #read (entries, bytes) {
      if (this.#isFinished) return
      const chunk = await this.#scan.read(entries, bytes)
      if (this.#signal?.aborted) throw new AbortError(this.#signal.reason)
      this.#isFinished = chunk[0] === 1
      this.#chunk = new Unpacker(chunk, 1)
    }

    _seek (target) {
      packer.restart().raw(target)
      this.#scan.seek(packer.buffer, packer.length)
      this.#chunk = empty
      this.#chunkEntries = 1
      this.#isFinished = false
    }

    async _close () {
      this.#chunk = empty
      this.#isFinished = true
      this.#scan.close()
    }
  }
}

/** The parts of entries that an iterator of a class reads. */
function partsOf (Base, options) {
  if (Base === AbstractKeyIterator || options.values === false) return KEYS
  if (Base === AbstractValueIterator || options.keys === false) return VALUES
  return BOTH
}

class AbortError extends ModuleError {
  constructor (cause) {
    super('Operation has been aborted', { code: 'LEVEL_ABORTED', cause })
  }

  get name () {
    return 'AbortError'
  }
}

exports.Iterator = iteratorClass(AbstractIterator, (chunk, iterator) => [
  iterator.parts === VALUES ? undefined : chunk.next(iterator.isTextKey),
  iterator.parts === KEYS ? undefined : chunk.next(iterator.isTextValue)
])
exports.KeyIterator = iteratorClass(AbstractKeyIterator, (chunk, iterator) => chunk.next(iterator.isTextKey))
exports.ValueIterator = iteratorClass(AbstractValueIterator, (chunk, iterator) => chunk.next(iterator.isTextValue))
exports.partsOf = partsOf
