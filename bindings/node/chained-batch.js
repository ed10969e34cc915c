'use strict'

// A batch that packs each operation when it is added.

const { AbstractChainedBatch } = require('abstract-level')
const { Packer } = require('./packed')

const FIRST_SIZE = 256

class ChainedBatch extends AbstractChainedBatch {
  #packer = new Packer(FIRST_SIZE)
  #writes

  constructor (db, writes) {
    super(db)
    this.#writes = writes
  }

  _put (key, value) {
    this.#packer.put(key, value)
  }

  _del (key) {
    this.#packer.del(key)
  }

  _clear () {
    this.#packer.restart()
  }

  async _write ({ sync }) {
    const { buffer, length } = this.#packer
    return this.#writes.write(packer => packer.raw(buffer.subarray(0, length)), sync === true)
  }

  async _close () {
    this.#packer = null
  }
}

exports.ChainedBatch = ChainedBatch
