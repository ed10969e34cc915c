'use strict'

// Compares Tamis with classic-level, rocksdb and lmdb on the same data, and prints a table.
//
//     bindings/node/build
//     npm install --prefix bindings/node --no-save classic-level@3.0.0 rocksdb@5.2.1 lmdb@3.5.6
//     node bindings/node/bench.js --entries 1000000 --rounds 3 --encoding utf8
//
// The entries have random keys of 16 bytes and values of 100 bytes, as strings or (`--encoding buffer`) as buffers. Each operation runs
// in rounds, one store after the other, and the best round of a store counts. The stores have the same size of cache, no compression
// and a filter for points; Tamis also has one for ranges. Stores that are not installed are left out. `get` reads 100 keys at a time
// with Promise.all; LMDB reads are synchronous, in the thread of the event loop.

const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { parseArgs, promisify } = require('node:util')
const { TamisLevel } = require('tamis-level')

const CACHE_BYTES = 256 << 20
const BATCH = 1000
const GROUP = 100
const SCAN = 50

/** Tamis and classic-level. */
class Level {
  constructor (db) {
    this.db = db
  }

  open () {
    return this.db.open()
  }

  batch (operations) {
    return this.db.batch(operations)
  }

  get (keys) {
    return Promise.all(keys.map(key => this.db.get(key)))
  }

  getSync (keys) {
    for (const key of keys) this.db.getSync(key)
  }

  getMany (keys) {
    return this.db.getMany(keys)
  }

  async iterate () {
    let count = 0
    for await (const [key] of this.db.iterator()) count += key.length > 0 ? 1 : 0
    return count
  }

  range (options) {
    return this.db.iterator(options).all()
  }

  settle (first, last) {
    return this.db.compactRange(first, last)
  }

  close () {
    return this.db.close()
  }
}

/** rocksdb, whose interface has callbacks. */
class Rocks {
  constructor (db, options) {
    this.db = db
    this.options = options
    for (const name of ['open', 'batch', 'close', 'getMany']) this[name] = promisify(db[name].bind(db))
    this.getOne = promisify(db.get.bind(db))
    this.settle = promisify(db.compactRange.bind(db))
  }

  open () {
    return promisify(this.db.open.bind(this.db))(this.options)
  }

  get (keys) {
    return Promise.all(keys.map(key => this.getOne(key, this.options)))
  }

  getMany (keys) {
    return promisify(this.db.getMany.bind(this.db))(keys, this.options)
  }

  async iterate () {
    return (await this.range({})).length
  }

  range (options) {
    const { keyAsBuffer, valueAsBuffer } = this.options
    const iterator = this.db.iterator({ ...options, keyAsBuffer, valueAsBuffer })
    return new Promise((resolve, reject) => {
      const entries = []
      const next = () => iterator.next((error, key, value) => {
        if (error) return reject(error)
        if (key === undefined) return iterator.end(error => error ? reject(error) : resolve(entries))
        entries.push([key, value])
        next()
      })
      next()
    })
  }
}

/** LMDB. */
class Lmdb {
  constructor (open) {
    this.openDb = open
  }

  async open () {
    this.db = this.openDb()
  }

  async batch (operations) {
    await this.db.batch(() => { for (const { key, value } of operations) this.db.put(key, value) })
  }

  getSync (keys) {
    for (const key of keys) this.db.get(key)
  }

  async get (keys) {
    this.getSync(keys)
  }

  getMany (keys) {
    return this.db.getMany(keys)
  }

  async iterate () {
    let count = 0
    for (const { key } of this.db.getRange()) count += key.length > 0 ? 1 : 0
    return count
  }

  async range ({ gte, lt, limit }) {
    return Array.from(this.db.getRange({ start: gte, end: lt, limit }))
  }

  async settle () {
    await this.db.flushed
  }

  close () {
    return this.db.close()
  }
}

/** The stores that are installed: for each a function that creates it in a folder. */
function stores (encoding) {
  const isText = encoding === 'utf8'
  const both = { keyEncoding: encoding, valueEncoding: encoding }
  const create = {
    tamis: () => folder => new Level(new TamisLevel(folder, { ...both, cacheBytes: CACHE_BYTES, filters: 'blocked-bloom@10+surf@16' })),
    'classic-level': ({ ClassicLevel }) => folder => new Level(new ClassicLevel(folder, { ...both, cacheSize: CACHE_BYTES, compression: false })),
    rocksdb: rocksdb => folder => {
      const options = { keyAsBuffer: !isText, valueAsBuffer: !isText, asBuffer: !isText }
      return new Rocks(rocksdb(folder), { ...options, cacheSize: CACHE_BYTES, compression: false })
    },
    lmdb: ({ open }) => folder => new Lmdb(() => open({
      path: folder,
      noSync: true,
      encoding: isText ? 'string' : 'binary',
      keyEncoding: isText ? undefined : 'binary'
    }))
  }
  const found = []
  for (const [name, make] of Object.entries(create)) {
    try {
      found.push([name, make(name === 'tamis' ? null : require(name))])
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error
      console.log(`${name} is not installed`)
    }
  }
  return found
}

/** Random keys and values from a seed. */
function entries (count, encoding) {
  let state = 1n
  const random = () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n)
    return state.toString(16).padStart(16, '0')
  }
  const of = text => encoding === 'utf8' ? text : Buffer.from(text)
  const filler = Array.from({ length: 64 }, random).join('')
  const list = Array.from({ length: count }, (_, index) => {
    const offset = index % (filler.length - 100)
    return { type: 'put', key: of(random()), value: of(filler.slice(offset, offset + 100)) }
  })
  return { list, of, random }
}

function chunks (list, size) {
  const all = []
  for (let start = 0; start < list.length; start += size) all.push(list.slice(start, start + size))
  return all
}

async function rate (count, work) {
  globalThis.gc?.()
  const start = process.hrtime.bigint()
  await work()
  return count / (Number(process.hrtime.bigint() - start) / 1e9)
}

/** Fills a new store of each kind in each round; returns the stores of the last round. */
async function writes (kinds, folder, list, rounds, note) {
  const batches = chunks(list, BATCH)
  const open = []
  for (let round = 0; round < rounds; round++) {
    for (const [name, create] of kinds) {
      const store = create(path.join(folder, `${name}-${round}`))
      await store.open()
      note('batch put', name, await rate(list.length, async () => {
        for (const batch of batches) await store.batch(batch)
      }))
      if (round === rounds - 1) open.push([name, store])
      else await store.close()
    }
  }
  return open
}

async function reads (open, { list, of, random }, rounds, note) {
  const keys = Array.from({ length: Math.min(list.length, 100_000) }, (_, index) => list[(index * 7919) % list.length].key)
  const groups = chunks(keys, GROUP)
  const starts = keys.slice(0, 5000)
  // Behind a random key a range without keys.
  const gaps = Array.from({ length: 20_000 }, () => random().slice(0, 14)).map(key => ({ gte: of(key + 'g'), lt: of(key + 'h') }))
  const operations = {
    [`get, ${GROUP} at a time`]: [keys.length, async store => { for (const group of groups) await store.get(group) }],
    'get, one at a time': [starts.length, async store => { for (const key of starts) await store.get([key]) }],
    getSync: [keys.length, store => store.getSync(keys), 'getSync'],
    [`getMany of ${GROUP}`]: [keys.length, async store => { for (const group of groups) await store.getMany(group) }],
    'iterate, entries': [list.length, async store => {
      if (await store.iterate() !== list.length) throw new Error('the store has lost entries')
    }],
    [`range of ${SCAN} entries`]: [starts.length, async store => { for (const gte of starts) await store.range({ gte, limit: SCAN }) }],
    'empty range': [gaps.length, async store => {
      for (const gap of gaps) if ((await store.range(gap)).length > 0) throw new Error('the range is not empty')
    }]
  }
  for (const [operation, [count, work, needed]] of Object.entries(operations)) {
    for (let round = 0; round < rounds; round++) {
      for (const [name, store] of open) {
        if (needed === undefined || needed in store) note(operation, name, await rate(count, () => work(store)))
      }
    }
  }
}

async function main () {
  const { values } = parseArgs({
    options: {
      entries: { type: 'string', default: '1000000' },
      rounds: { type: 'string', default: '3' },
      encoding: { type: 'string', default: 'utf8' },
      folder: { type: 'string', default: tmpdir() }
    }
  })
  const kinds = stores(values.encoding)
  const names = kinds.map(([name]) => name)
  const data = entries(Number(values.entries), values.encoding)
  const folder = mkdtempSync(path.join(values.folder, 'tamis-bench-'))
  const table = new Map()
  const note = (operation, name, rate) => {
    if (!table.has(operation)) table.set(operation, {})
    const row = table.get(operation)
    row[name] = Math.max(row[name] ?? 0, rate)
  }
  const open = await writes(kinds, folder, data.list, Number(values.rounds), note)
  for (const [, store] of open) await store.settle(data.of('0'), data.of('g'))
  await reads(open, data, Number(values.rounds), note)
  for (const [, store] of open) await store.close()
  rmSync(folder, { recursive: true })

  console.log(`\nNode.js ${process.version}, ${data.list.length} entries, ${values.encoding}\n`)
  const column = text => String(text).padStart(14)
  console.log('operations a second'.padEnd(24) + names.map(column).join('') + column('tamis/classic'))
  for (const [operation, row] of table) {
    const cells = names.map(name => column(row[name] === undefined ? '-' : Math.round(row[name]).toLocaleString('en')))
    const ratio = row['classic-level'] === undefined ? '-' : (row.tamis / row['classic-level']).toFixed(2)
    console.log(operation.padEnd(24) + cells.join('') + column(ratio))
  }
}

main()
