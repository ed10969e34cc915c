'use strict'

// A batch that packs each operation when it is added.

const { AbstractChainedBatch } = require('abstract-level')
const { Packer } = require('./packed')

const FIRST_SIZE = 256

class ChainedBatch extends AbstractChainedBatch {
  #packer = new Packer(FIRST_SIZE)
  #write

  /** `write` writes the operations of a packer. */
  constructor (db, write) {
    super(db)
    this.#write = write
  }

  _put (key, value) {
    this.#packer.byte(1).add(key).add(value)
  }

  _del (key) {
    this.#packer.byte(0).add(key)
  }

  _clear () {
    this.#packer.restart()
  }

  async _write (options) {
    return this.#write(this.#packer, options)
  }

  async _close () {
    this.#packer = null
  }
}

exports.ChainedBatch = ChainedBatch
