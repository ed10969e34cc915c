'use strict'

// Reads and writes that abstract-level's suite does not test: large data against a model, the empty key, the order of writes.

const assert = require('node:assert/strict')
const path = require('node:path')
const test = require('node:test')
const { create, folder, open, random } = require('./support')

const compare = ([a], [b]) => a < b ? -1 : a > b ? 1 : 0

/** The entries of a range of a sorted model. */
function expected (entries, { gt, gte, lt, lte, reverse, limit = Infinity }) {
  const found = entries.filter(([key]) =>
    (gte === undefined || key >= gte) && (gt === undefined || key > gt) &&
    (lte === undefined || key <= lte) && (lt === undefined || key < lt))
  if (reverse) found.reverse()
  return found.slice(0, limit)
}

test('ranges of many chunks equal a model in both directions, with limits', async t => {
  const db = await open(t)
  const next = random(1)
  const model = new Map([['', 'the empty key']])
  for (let index = 0; index < 6000; index++) model.set(String(next(100_000)), 'v'.repeat(next(60)) + index)
  await db.batch([...model].map(([key, value]) => ({ type: 'put', key, value })))
  const entries = [...model].sort(compare)
  for (let round = 0; round < 60; round++) {
    const options = { reverse: next(2) === 1 }
    if (next(3) > 0) options[next(2) ? 'gte' : 'gt'] = String(next(100_000))
    if (next(3) > 0) options[next(2) ? 'lte' : 'lt'] = String(next(100_000))
    if (next(3) === 0) options.limit = next(2000)
    const wanted = expected(entries, options)
    const read = []
    for await (const entry of db.iterator(options)) read.push(entry)
    assert.deepEqual(read, wanted)
    assert.deepEqual(await db.iterator(options).all(), wanted)
    assert.deepEqual(await db.keys(options).all(), wanted.map(([key]) => key))
    assert.deepEqual(await db.values(options).all(), wanted.map(([, value]) => value))
  }
})

test('an iterator continues after a seek, also into a chunk that it has read', async t => {
  const db = await open(t)
  const keys = Array.from({ length: 3000 }, (_, index) => String(index).padStart(4, '0'))
  await db.batch(keys.map(key => ({ type: 'put', key, value: key })))
  for (const reverse of [false, true]) {
    const iterator = db.keys({ reverse, gte: '0100', lt: '2900' })
    const next = random(2)
    for (let round = 0; round < 200; round++) {
      const from = next(3000)
      iterator.seek(keys[from])
      const isInside = from >= 100 && from < 2900
      for (let step = 0; step < next(40); step++) {
        const at = reverse ? from - step : from + step
        const wanted = isInside && at >= 100 && at < 2900 ? keys[at] : undefined
        assert.equal(await iterator.next(), wanted)
        if (wanted === undefined) break
      }
    }
    await iterator.close()
  }
})

test('an iterator mixes next() and nextv() without losing entries', async t => {
  const db = await open(t)
  const keys = Array.from({ length: 2000 }, (_, index) => String(index).padStart(4, '0'))
  await db.batch(keys.map(key => ({ type: 'put', key, value: '' })))
  const [iterator, read] = [db.keys(), []]
  for (let items = ['']; items.length > 0;) {
    const key = await iterator.next()
    if (key !== undefined) read.push(key)
    items = await iterator.nextv(70)
    read.push(...items)
  }
  await iterator.close()
  assert.deepEqual(read, keys)
})

test('the empty key is an ordinary key', async t => {
  const location = path.join(folder(t), 'store')
  let db = await open(t, {}, location)
  assert.equal(await db.get(''), undefined)
  await db.del('')
  const before = db.snapshot()
  await db.batch([{ type: 'put', key: '', value: 'none' }, { type: 'put', key: 'a', value: 'one' }])
  assert.equal(db.getSync(''), 'none')
  assert.equal(await db.get('', { snapshot: before }), undefined)
  assert.deepEqual(await db.keys({ snapshot: before }).all(), [])
  assert.deepEqual(await db.getMany(['a', '', 'b']), ['one', 'none', undefined])
  assert.deepEqual(await db.hasMany(['', 'b']), [true, false])
  assert.deepEqual(await db.keys().all(), ['', 'a'])
  assert.deepEqual(await db.keys({ reverse: true }).all(), ['a', ''])
  assert.deepEqual(await db.keys({ gt: '' }).all(), ['a'])
  assert.deepEqual(await db.keys({ lte: '' }).all(), [''])
  const iterator = db.keys({ reverse: true })
  iterator.seek('')
  assert.equal(await iterator.next(), '')
  await db.close()

  db = await open(t, {}, location)
  assert.deepEqual(await db.keys().all(), ['', 'a'])
  await db.clear({ gt: '' })
  assert.deepEqual(await db.keys().all(), [''])
  await db.clear({ limit: 1 })
  assert.deepEqual(await db.keys().all(), [])
})

test('writes take effect in the order of their calls', async t => {
  const db = await open(t)
  const writes = []
  for (let round = 0; round < 300; round++) {
    writes.push(db.put('key', String(round)))
    if (round % 50 === 0) writes.push(db.clear())
    if (round % 70 === 0) writes.push(db.batch().put('key', 'batch').put('other', String(round)).write())
  }
  await Promise.all(writes)
  assert.equal(await db.get('key'), '299')
  assert.equal(await db.get('other'), '280')
  for (let round = 0; round < 8; round++) {
    // The first write takes longer than the second, which another turn of the event loop calls.
    const slow = db.batch(Array.from({ length: 20_000 }, (_, index) => ({ type: 'put', key: 'key', value: `slow ${index}` })))
    await new Promise(setImmediate)
    await Promise.all([slow, db.put('key', `quick ${round}`)])
    assert.equal(await db.get('key'), `quick ${round}`)
  }
  await Promise.all([db.clear(), db.put('after', 'kept')])
  assert.deepEqual(await db.iterator().all(), [['after', 'kept']])
})

test('many large writes of one turn are all written', async t => {
  const db = await open(t)
  const value = 'v'.repeat(3_000_000)
  const keys = Array.from({ length: 30 }, (_, index) => String(index).padStart(2, '0'))
  await Promise.all(keys.map(key => db.put(key, value + key)))
  for (const key of keys) assert.ok((await db.get(key)).endsWith('v' + key))
})

test('close() waits for the calls before it', async t => {
  const location = path.join(folder(t), 'store')
  const db = await open(t, {}, location)
  await db.put('old', 'value')
  const calls = [db.get('old'), db.put('a', '1'), db.clear({ gte: 'old' }), db.put('b', '2', { sync: true }), db.has('old'), db.getMany(['old'])]
  await Promise.all([db.close(), ...calls])
  const again = await open(t, {}, location)
  assert.deepEqual(await again.iterator().all(), [['a', '1'], ['b', '2']])
})

test('a clear() with a limit, a direction or a snapshot deletes those entries only', async t => {
  const db = await open(t)
  const fill = () => db.batch(['a', 'b', 'c', 'd'].map(key => ({ type: 'put', key, value: key })))
  await fill()
  await db.clear({ limit: 1, reverse: true })
  assert.deepEqual(await db.keys().all(), ['a', 'b', 'c'])
  const snapshot = db.snapshot()
  await fill()
  await db.clear({ snapshot, gte: 'b' })
  assert.deepEqual(await db.keys().all(), ['a', 'd'])
  await db.clear({ gte: 'z', lt: 'a' })
  assert.deepEqual(await db.keys().all(), ['a', 'd'])
})

test('an iterator and a snapshot do not see later writes', async t => {
  const db = await open(t)
  await db.put('a', 'old')
  const [iterator, snapshot] = [db.iterator(), db.snapshot()]
  await Promise.all([db.put('a', 'new'), db.put('b', 'new')])
  assert.deepEqual(await iterator.all(), [['a', 'old']])
  assert.deepEqual(await db.iterator({ snapshot }).all(), [['a', 'old']])
  assert.deepEqual(await Promise.all([db.get('a', { snapshot }), db.get('a'), db.get('b', { snapshot })]), ['old', 'new', undefined])
  assert.equal(db.getSync('a', { snapshot }), 'old')
  await snapshot.close()
})

test('keys and values of any bytes and lengths come back as they are', async t => {
  const db = await open(t, { keyEncoding: 'buffer', valueEncoding: 'view' })
  const next = random(3)
  const key = Buffer.from([0, 255, 128, 10])
  for (const length of [0, 1, 4095, 4096, 100_000, 3_000_000]) {
    const value = Uint8Array.from({ length }, () => next(256))
    await db.put(key, value)
    assert.deepEqual(new Uint8Array(await db.get(key)), value)
    assert.deepEqual((await db.iterator().all()).map(([key, value]) => [key, new Uint8Array(value)]), [[key, value]])
  }
  const text = db.sublevel('text')
  await text.put('\u00e4\ud83d\ude00', 'gr\u00fcn')
  assert.deepEqual(await text.iterator().all(), [['\u00e4\ud83d\ude00', 'gr\u00fcn']])
})

test('a buffer may change after the call that got it', async t => {
  const db = await open(t, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  const bytes = Buffer.from('a')
  const put = db.put(bytes, bytes)
  bytes.write('b')
  await put
  bytes.write('a')
  const get = db.get(bytes)
  bytes.write('b')
  assert.equal(String(await get), 'a')
})

test('a value that the program keeps does not keep its chunk', async t => {
  const db = await open(t, { valueEncoding: 'buffer' })
  await db.batch(Array.from({ length: 500 }, (_, index) => ({ type: 'put', key: String(index), value: Buffer.alloc(100) })))
  for (const value of [...await db.values().all(), ...await db.getMany(['1', '2'])]) {
    assert.ok(value.buffer.byteLength <= Buffer.poolSize)
  }
})

test('a checkpoint is a copy that opens, and a compaction changes no entry', async t => {
  const db = await open(t)
  await db.batch([{ type: 'put', key: 'a', value: '1' }, { type: 'put', key: 'b', value: '2' }])
  await db.compactRange('a', 'z')
  const copy = path.join(folder(t), 'copy')
  const report = await db.checkpoint(copy)
  assert.equal(typeof report, 'object')
  await db.clear()
  const opened = await open(t, { createIfMissing: false }, copy)
  assert.deepEqual(await opened.iterator().all(), [['a', '1'], ['b', '2']])
  assert.ok((await db.statistics()).writes >= 2)
})

test('the layout changes while the database is open, and stays changed', async t => {
  const location = path.join(folder(t), 'store')
  const db = await open(t, {}, location)
  await db.put('a', '1')
  await db.setOptions({ layout: 'tiered' })
  await assert.rejects(db.setOptions({ blockBytes: 8192 }), /copy the entries/)
  await assert.rejects(db.setOptions({ colour: 'red' }), /unknown option "colour"/)
  await db.close()
  const again = await open(t, { layout: 'tiered' }, location)
  assert.equal(await again.get('a'), '1')
})

test('calls before the open wait for it', async t => {
  const db = create(t)
  const [, value, statistics] = await Promise.all([db.put('a', '1'), db.get('a'), db.statistics(), db.compactRange('a', 'b')])
  assert.ok(value === undefined || value === '1')
  assert.equal(typeof statistics.writes, 'number')
})
