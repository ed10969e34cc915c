'use strict'

// Gathers the keys that `get` reads in one turn of the event loop: one call of the native module reads them.

const { Packer, Unpacker } = require('./packed')

class GetGroup {
  #read
  #packer = new Packer()
  #snapshot
  #waiting = []

  /** `read` reads packed keys at a snapshot: it resolves with packed values. */
  constructor (read) {
    this.#read = read
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

  async #send () {
    const waiting = this.#waiting
    if (waiting.length === 0) return
    const [keys, snapshot] = [this.#packer.copy(), this.#snapshot]
    this.#waiting = []
    try {
      const values = new Unpacker(await this.#read(keys, keys.length, snapshot))
      for (const { isText, resolve } of waiting) resolve(values.next(isText))
    } catch (error) {
      if (waiting.length === 1) waiting[0].reject(error)
      else this.#readEach(keys, snapshot, waiting)
    }
  }

  /** A key that cannot be read fails alone. */
  #readEach (keys, snapshot, waiting) {
    const unpacker = new Unpacker(keys)
    for (const { isText, resolve, reject } of waiting) {
      const key = new Packer().add(unpacker.next(false)).copy()
      this.#read(key, key.length, snapshot).then(value => resolve(new Unpacker(value).next(isText))).catch(reject)
    }
  }
}

exports.GetGroup = GetGroup
