'use strict'

// An abstract-level database over a Tamis store.
//
// abstract-level encodes keys and values and checks arguments; this class packs them (packed.js) and calls the native module, which
// works on the thread pool and rejects with errors that have a code.

const fsp = require('node:fs/promises')
const { AbstractLevel, AbstractSnapshot } = require('abstract-level')
const ModuleError = require('module-error')
const native = require('./native')
const { ChainedBatch } = require('./chained-batch')
const { GetGroup } = require('./get-group')
const { Iterator, KeyIterator, ValueIterator, partsOf } = require('./iterator')
const { Packer, Unpacker } = require('./packed')
const { WriteQueue } = require('./write-queue')

const packer = new Packer()

class TamisLevel extends AbstractLevel {
  #location
  #store = new native.Store()
  #writes = new WriteQueue(this.#store)
  #pending = 0
  #whenIdle = null
  #settle = () => { if (--this.#pending === 0) this.#whenIdle?.() }
  #gets = new GetGroup(
    (key, length, isText, snapshot) => this.#track(this.#store.get(key, length, isText, snapshot)),
    (keys, length, snapshot) => this.#track(this.#store.getMany(keys, length, snapshot))
  )

  constructor (location, options) {
    if (typeof location !== 'string' || location === '') {
      throw new TypeError("The first argument 'location' must be a non-empty string")
    }
    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      createIfMissing: true,
      errorIfExists: true,
      explicitSnapshots: true,
      getSync: true,
      signals: { iterators: true },
      additionalMethods: { compactRange: true, setOptions: true, statistics: true, checkpoint: true }
    }, options)
    this.#location = location
  }

  get location () {
    return this.#location
  }

  async _open (options) {
    const { errorIfExists, passive, ...named } = options
    if (options.createIfMissing) await fsp.mkdir(this.#location, { recursive: true })
    return this.#store.open(this.#location, textsOf(named), errorIfExists)
  }

  async _close () {
    await this.#writes.idle()
    if (this.#pending > 0) await new Promise(resolve => { this.#whenIdle = resolve })
    return this.#store.close()
  }

  /** Counts a call until its promise is settled: the close waits for it. */
  #track (promise) {
    this.#pending++
    promise.then(this.#settle, this.#settle)
    return promise
  }

  _get (key, options) {
    const [isText, snapshot] = [options.valueEncoding === 'utf8', this.#snapshotOf(options)]
    if (this.#pending > 0) return this.#gets.get(key, isText, snapshot)
    // A call that has no company does not wait for it.
    const { buffer, length } = packer.restart().add(key)
    return this.#track(this.#store.get(buffer, length, isText, snapshot))
  }

  _getSync (key, options) {
    const { buffer, length } = packer.restart().raw(key)
    return this.#store.getSync(buffer, length, options.valueEncoding === 'utf8', this.#snapshotOf(options))
  }

  async _getMany (keys, options) {
    const { buffer, length } = packKeys(keys)
    const values = new Unpacker(await this.#track(this.#store.getMany(buffer, length, this.#snapshotOf(options))))
    const isText = options.valueEncoding === 'utf8'
    return keys.map(() => values.next(isText))
  }

  _has (key, options) {
    const { buffer, length } = packer.restart().raw(key)
    return this.#track(this.#store.has(buffer, length, this.#snapshotOf(options)))
  }

  async _hasMany (keys, options) {
    const { buffer, length } = packKeys(keys)
    const exist = await this.#track(this.#store.hasMany(buffer, length, this.#snapshotOf(options)))
    return Array.from(exist, byte => byte === 1)
  }

  _put (key, value, { sync }) {
    return this.#writes.write(packer => packer.put(key, value), sync === true)
  }

  _del (key, { sync }) {
    return this.#writes.write(packer => packer.del(key), sync === true)
  }

  _batch (operations, { sync }) {
    return this.#writes.write(packer => {
      for (const { type, key, value } of operations) {
        if (type === 'put') packer.put(key, value)
        else packer.del(key)
      }
    }, sync === true)
  }

  _chainedBatch () {
    return new ChainedBatch(this, this.#writes)
  }

  async _clear (options) {
    const range = packer.restart().range(options).copy()
    const { reverse, limit, snapshot } = options
    const handle = this.#snapshotOf({ snapshot })
    return this.#writes.call(async () => this.#store.clear(range, range.length, reverse, limit, handle))
  }

  _iterator (options) {
    return new Iterator(this, options, this.#scan(options, partsOf(null, options)))
  }

  _keys (options) {
    return new KeyIterator(this, options, this.#scan(options, partsOf(null, { values: false })))
  }

  _values (options) {
    return new ValueIterator(this, options, this.#scan(options, partsOf(null, { keys: false })))
  }

  #scan (options, parts) {
    const { buffer, length } = packer.restart().range(options)
    return this.#store.scan(buffer, length, options.reverse, parts, this.#snapshotOf(options))
  }

  _snapshot (options) {
    return new Snapshot(options, this.#store, this.#store.snapshot())
  }

  /** The native snapshot of the options. */
  #snapshotOf ({ snapshot }) {
    if (snapshot === undefined || snapshot === null) return undefined
    if (!(snapshot instanceof Snapshot) || snapshot.store !== this.#store) {
      throw new ModuleError("The option 'snapshot' must be a snapshot of this database: take it with snapshot()", {
        code: 'LEVEL_INVALID_SNAPSHOT'
      })
    }
    return snapshot.handle
  }

  /** Compacts the keys from `start` to `end` into the deepest level. */
  async compactRange (start, end, options) {
    if (arguments.length < 2) throw new TypeError("The arguments 'start' and 'end' are required")
    const encoding = this.keyEncoding(options?.keyEncoding)
    const range = { gte: encoding.encode(start), lte: encoding.encode(end) }
    return this.#whenOpen(() => {
      const { buffer, length } = packer.restart().range(range)
      return this.#store.compact(buffer, length)
    })
  }

  /** Changes the layout, the filters or `expireAfter`. */
  async setOptions (options) {
    const texts = textsOf({ ...options })
    return this.#whenOpen(() => this.#store.setOptions(texts))
  }

  /** Counters since the open, and the state of log, cache and levels. */
  async statistics () {
    return JSON.parse(await this.#whenOpen(() => this.#store.statistics()))
  }

  /** Creates a consistent copy of the open database in a new or empty folder. */
  async checkpoint (location) {
    if (typeof location !== 'string' || location === '') {
      throw new TypeError("The first argument 'location' must be a non-empty string")
    }
    return JSON.parse(await this.#whenOpen(() => this.#store.checkpoint(location)))
  }

  async #whenOpen (work) {
    if (this.status === 'opening') return this.deferAsync(() => this.#whenOpen(work))
    return this.#track(work())
  }

  /** Repairs a damaged database that is not open. */
  static async repair (location) {
    if (typeof location !== 'string' || location === '') {
      throw new TypeError("The first argument 'location' must be a non-empty string")
    }
    return JSON.parse(await native.repair(location))
  }
}

class Snapshot extends AbstractSnapshot {
  constructor (options, store, handle) {
    super(options)
    this.store = store
    this.handle = handle
  }

  async _close () {
    this.handle.close()
  }
}

/** Options as texts; `null` is a value of a type that no option has. */
function textsOf (options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const isText = value => ['string', 'number', 'boolean'].includes(typeof value)
  return Object.fromEntries(given.map(([name, value]) => [name, isText(value) ? String(value) : null]))
}

function packKeys (keys) {
  packer.restart()
  for (const key of keys) packer.add(key)
  return packer
}

exports.TamisLevel = TamisLevel
