'use strict'

// Writes take effect in the order of their calls. One call of the native module at a time executes all writes that wait, so that
// threads do not wait for each other and a sync of the log serves many writes.

const ModuleError = require('module-error')
const { Packer, Unpacker } = require('./packed')

/** A group that is as large gets no more writes. */
const GROUP_BYTES = 1 << 20

class WriteQueue {
  #store
  #works = []
  #isBusy = false
  #whenIdle = []
  #packer = new Packer()

  constructor (store) {
    this.#store = store
  }

  /** Writes a batch: `pack` adds its operations to a packer. */
  write (pack, isSynced) {
    const last = this.#works.at(-1)
    const group = last instanceof Group && last.packer.length < GROUP_BYTES ? last : new Group(this.#packer)
    const done = group.add(pack, isSynced)
    if (group !== last) {
      this.#packer = null
      this.#enqueue(group)
    }
    return done
  }

  /** Calls `work` after all earlier writes; later writes wait for its promise. */
  call (work) {
    return new Promise((resolve, reject) => this.#enqueue({ send: () => work().then(resolve, reject) }))
  }

  /** Resolves when all writes are executed. */
  async idle () {
    if (this.#isBusy) await new Promise(resolve => this.#whenIdle.push(resolve))
  }

  #enqueue (work) {
    this.#works.push(work)
    if (this.#isBusy) return
    this.#isBusy = true
    queueMicrotask(() => this.#run())
  }

  async #run () {
    while (this.#works.length > 0) {
      const work = this.#works.shift()
      const sent = work.send(this.#store)
      // The native module has a copy of the operations.
      this.#packer ??= work.packer?.restart() ?? null
      await sent
    }
    this.#isBusy = false
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }
}

/** Batches that one call of the native module writes. */
class Group {
  #calls = []
  #isSynced = false

  constructor (packer) {
    this.packer = packer ?? new Packer()
  }

  add (pack, isSynced) {
    this.packer.nested(pack)
    this.#isSynced ||= isSynced
    return new Promise((resolve, reject) => this.#calls.push({ resolve, reject }))
  }

  async send (store) {
    try {
      const faults = new Unpacker(await store.write(this.packer.buffer, this.packer.length, this.#isSynced))
      for (const { resolve, reject } of this.#calls) {
        const code = faults.isEmpty ? undefined : faults.next(true)
        if (code === undefined) resolve()
        else reject(new ModuleError(faults.next(true), { code }))
      }
    } catch (error) {
      for (const { reject } of this.#calls) reject(error)
    }
  }
}

exports.WriteQueue = WriteQueue
