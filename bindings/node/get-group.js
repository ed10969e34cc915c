'use strict'

// Gathers the keys that `get` reads in one turn of the event loop: one call of the native module reads them.

const { Packer, Unpacker } = require('./packed')

class GetGroup {
  #read
  #readMany
  #packer = new Packer()
  #snapshot
  #waiting = []

  /** `read` reads a packed key at a snapshot, `readMany` reads packed keys: it resolves with packed values. */
  constructor (read, readMany) {
    this.#read = read
    this.#readMany = readMany
  }

  get (key, isText, snapshot) {
    if (this.#snapshot !== snapshot) this.#send()
    if (this.#waiting.length === 0) {
      this.#packer.restart()
      this.#snapshot = snapshot
      queueMicrotask(() => this.#send())
    }
    this.#packer.add(key)
    return new Promise((resolve, reject) => this.#waiting.push({ isText, resolve, reject }))
  }

  #send () {
    const waiting = this.#waiting
    if (waiting.length === 0) return
    this.#waiting = []
    const { buffer, length } = this.#packer
    if (waiting.length === 1) this.#sendOne(buffer, length, this.#snapshot, waiting[0])
    else this.#sendMany(this.#packer.copy(), this.#snapshot, waiting)
  }

  #sendOne (key, length, snapshot, { isText, resolve, reject }) {
    try {
      this.#read(key, length, isText, snapshot).then(resolve, reject)
    } catch (error) {
      reject(error)
    }
  }

  async #sendMany (keys, snapshot, waiting) {
    try {
      const values = new Unpacker(await this.#readMany(keys, keys.length, snapshot))
      for (const { isText, resolve } of waiting) resolve(values.next(isText))
    } catch {
      // A key that cannot be read fails alone.
      const unpacker = new Unpacker(keys)
      for (const one of waiting) {
        const key = new Packer().add(unpacker.next(false)).copy()
        this.#sendOne(key, key.length, snapshot, one)
      }
    }
  }
}

exports.GetGroup = GetGroup
