'use strict'

// Wrong arguments and closed handles give errors with a code and a sentence.

const assert = require('node:assert/strict')
const { mkdirSync, readdirSync, readFileSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const test = require('node:test')
const { TamisLevel } = require('tamis-level')
const { create, folder, open } = require('./support')

const rejects = (promise, code, message = /./) => assert.rejects(promise, { code, message })
/** The error of an open is the cause. */
const refuses = (db, code, message) => assert.rejects(db.open(), error => {
  assert.equal(error.code, 'LEVEL_DATABASE_NOT_OPEN')
  assert.equal(error.cause.code, code)
  assert.match(error.cause.message, message)
  return true
})

test('the location is a text', () => {
  for (const location of [undefined, null, 1, '', {}]) {
    assert.throws(() => new TamisLevel(location), { name: 'TypeError', message: /must be a non-empty string/ })
  }
})

test('options of wrong names, types and values are refused; those of the program are not', async t => {
  await refuses(create(t, { cacheBytes: 'many' }), 'LEVEL_INVALID_ARGUMENT', /cacheBytes: "many" is not valid; give a number of bytes/)
  await refuses(create(t, { cacheBytes: {} }), 'LEVEL_INVALID_ARGUMENT', /cacheBytes: give a string, a number or a boolean/)
  await refuses(create(t, { cache_bytes: 1 }), 'LEVEL_INVALID_ARGUMENT', /write cacheBytes/)
  await refuses(create(t, { filters: 'surf@x' }), 'LEVEL_INVALID_ARGUMENT', /filters/)
  await refuses(create(t, { workers: 1000 }), 'LEVEL_INVALID_ARGUMENT', /workers/)
  await open(t, { cacheBytes: '1MiB', workers: 1, userland: {}, cacheSize: 1, compression: undefined })
})

test('a folder that holds no database, or that is not there', async t => {
  const outer = folder(t)
  writeFileSync(path.join(outer, 'letter.txt'), 'text')
  await refuses(create(t, {}, outer), 'LEVEL_NOT_A_DATABASE', /not a Tamis store/)
  await refuses(create(t, { createIfMissing: false }, path.join(outer, 'none')), 'LEVEL_NOT_A_DATABASE', /does not exist/)
  await open(t, {}, path.join(outer, 'a', 'b', 'c'))
  await refuses(create(t, {}, path.join(outer, 'letter.txt')), 'EEXIST', /exist/)
})

test('an existing database, if the program wants a new one', async t => {
  const db = await open(t)
  await db.close()
  await refuses(create(t, { errorIfExists: true }, db.location), 'LEVEL_DATABASE_EXISTS', /exists; open it with errorIfExists: false/)
  await db.open()
})

test('a second handle of an open database, until the first is closed', async t => {
  const db = await open(t)
  const second = create(t, {}, db.location)
  await refuses(second, 'LEVEL_LOCKED', /close it there first/)
  await db.close()
  await second.open()
})

test('a read-only database refuses writes and answers reads', async t => {
  const first = await open(t)
  await first.put('a', '1')
  await first.close()
  const db = await open(t, { readOnly: true }, first.location)
  await rejects(db.put('a', '2'), 'LEVEL_READONLY', /read-only/)
  await rejects(db.put('', '2'), 'LEVEL_READONLY')
  await rejects(db.clear(), 'LEVEL_READONLY')
  assert.equal(await db.get('a'), '1')
})

test('keys that are too long are refused by writes and absent for reads', async t => {
  const db = await open(t)
  const long = 'k'.repeat(70_000)
  const [first, second, third] = await Promise.allSettled([db.put('a', '1'), db.put(long, '2'), db.put('b', '3')])
  assert.equal(first.status, 'fulfilled')
  assert.equal(third.status, 'fulfilled')
  assert.equal(second.reason.code, 'LEVEL_INVALID_KEY')
  assert.match(second.reason.message, /70000 bytes; use 1 to 65,535 bytes/)
  await rejects(db.batch([{ type: 'put', key: 'c', value: '4' }, { type: 'put', key: long, value: '5' }]), 'LEVEL_INVALID_KEY')
  assert.equal(await db.get(long), undefined)
  assert.deepEqual(await db.getMany(['a', long]), ['1', undefined])
  await db.del(long)
  assert.deepEqual(await db.keys().all(), ['a', 'b'])
  assert.deepEqual(await db.keys({ gte: long }).all(), [])
})

test('calls after the close', async t => {
  const db = await open(t)
  await db.put('a', '1')
  const [iterator, snapshot, batch] = [db.iterator(), db.snapshot(), db.batch().put('b', '2')]
  await db.close()
  for (const call of [() => db.get('a'), () => db.put('a', '1'), () => db.getMany(['a']), () => db.clear(), () => db.statistics(), () => db.checkpoint('copy'), () => db.compactRange('a', 'b')]) {
    await rejects(call(), 'LEVEL_DATABASE_NOT_OPEN', /not open/i)
  }
  assert.throws(() => db.getSync('a'), { code: 'LEVEL_DATABASE_NOT_OPEN' })
  assert.throws(() => db.iterator(), { code: 'LEVEL_DATABASE_NOT_OPEN' })
  await rejects(iterator.next(), 'LEVEL_ITERATOR_NOT_OPEN')
  await rejects(batch.write(), 'LEVEL_BATCH_NOT_OPEN')
  await db.open()
  await rejects(db.get('a', { snapshot }), 'LEVEL_SNAPSHOT_NOT_OPEN')
  await db.close()
  await db.close()
})

test('a snapshot of another database', async t => {
  const [db, other] = [await open(t), await open(t)]
  const snapshot = other.snapshot()
  await rejects(db.get('a', { snapshot }), 'LEVEL_INVALID_SNAPSHOT', /a snapshot of this database/)
  await rejects(db.clear({ snapshot }), 'LEVEL_INVALID_SNAPSHOT')
  assert.throws(() => db.iterator({ snapshot }), { code: 'LEVEL_INVALID_SNAPSHOT' })
})

test('an exception in an encoding or a hook rejects that call alone, and a batch of it writes nothing', async t => {
  const db = await open(t)
  const bad = { name: 'bad', format: 'utf8', encode: () => { throw new RangeError('mine') }, decode: () => { throw new RangeError('mine') } }
  const wrong = { name: 'wrong', format: 'utf8', encode: () => 7, decode: text => text }
  await assert.rejects(db.put('a', '1', { valueEncoding: bad }), { message: 'mine' })
  const calls = [db.put('a', '1'), db.put('b', '2', { valueEncoding: wrong }), db.get('a', { keyEncoding: wrong }), db.put('c', '3')]
  const outcomes = await Promise.allSettled(calls)
  assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  assert.match(outcomes[1].reason.message, /An encoding must return a string, a Buffer or a Uint8Array, not number/)
  await assert.rejects(db.batch([{ type: 'put', key: 'd', value: '4' }, { type: 'put', key: 'e', value: '5', valueEncoding: wrong }]), TypeError)
  const batch = db.batch().put('f', '6')
  assert.throws(() => batch.put('g', '7', { valueEncoding: wrong }), TypeError)
  await batch.write()
  await rejects(db.get('a', { valueEncoding: bad }), 'LEVEL_DECODE_ERROR')
  await rejects(db.iterator({ valueEncoding: bad }).next(), 'LEVEL_DECODE_ERROR')
  db.hooks.prewrite.add(() => { throw new RangeError('mine') })
  await rejects(db.put('h', '8'), 'LEVEL_HOOK_ERROR')
  assert.deepEqual(await db.keys().all(), ['a', 'c', 'f'])
})

test('an exception in a loop closes its iterator', async t => {
  const db = await open(t)
  await db.batch([{ type: 'put', key: 'a', value: '1' }, { type: 'put', key: 'b', value: '2' }])
  const iterator = db.iterator()
  await assert.rejects(async () => { for await (const [key] of iterator) throw new RangeError(key) }, { message: 'a' })
  await rejects(iterator.next(), 'LEVEL_ITERATOR_NOT_OPEN')
  assert.equal((await db.statistics()).open_scans, 0)
})

test('a damaged table is an error that names it, and other keys are read', async t => {
  const db = await open(t, { tableAccess: 'buffered' })
  const key = index => String(index).padStart(5, '0')
  await db.batch(Array.from({ length: 20_000 }, (_, index) => ({ type: 'put', key: key(index), value: 'v'.repeat(100) })))
  await db.compactRange('', 'z')
  await db.close()
  const [table] = readdirSync(db.location).filter(name => readFileSync(path.join(db.location, name)).length > 1 << 20 && !name.includes('log'))
  const file = path.join(db.location, table)
  const bytes = readFileSync(file)
  const place = bytes.indexOf(Buffer.from('v'.repeat(100)), bytes.length >> 2)
  bytes[place] ^= 1
  writeFileSync(file, bytes)
  await db.open()
  const outcomes = await Promise.allSettled(Array.from({ length: 20_000 }, (_, index) => db.get(key(index))))
  const failed = outcomes.filter(({ status }) => status === 'rejected')
  assert.ok(failed.length > 0 && failed.length < 200, `${failed.length} of 20,000 keys failed`)
  for (const { reason } of failed) {
    assert.equal(reason.code, 'LEVEL_CORRUPTION')
    assert.match(reason.message, /damaged .* at offset/)
  }
  await rejects(db.getMany([key(0), ...Array.from({ length: 20_000 }, (_, index) => key(index))]), 'LEVEL_CORRUPTION')
  const iterator = db.keys()
  let count = 0
  await rejects((async () => { while (await iterator.next() !== undefined) count++ })(), 'LEVEL_CORRUPTION')
  assert.ok(count > 1000, 'the entries before the damage are read')
  assert.equal(outcomes[count - 1].status, 'fulfilled')
  assert.equal(outcomes[count].status, 'rejected')
  await iterator.close()
  await db.close()
  const report = await TamisLevel.repair(db.location)
  assert.equal(report.was_sound, false)
  await db.open()
  assert.equal(await db.get(key(0)), 'v'.repeat(100))
})

test('a copy and a repair of impossible places', async t => {
  const db = await open(t)
  await rejects(db.checkpoint(db.location), 'LEVEL_INVALID_ARGUMENT', /name a folder outside of the store/)
  await assert.rejects(db.checkpoint(''), TypeError)
  await rejects(TamisLevel.repair(db.location), 'LEVEL_LOCKED')
  const empty = path.join(folder(t), 'empty')
  mkdirSync(empty)
  await rejects(TamisLevel.repair(empty), 'LEVEL_NOT_A_DATABASE')
  await assert.rejects(TamisLevel.repair(7), TypeError)
})

test('the native module refuses packed bytes of other callers', async t => {
  const { Store } = require('../native')
  const [store, location] = [new Store(), path.join(folder(t), 'store')]
  assert.throws(() => store.write(Buffer.alloc(0), 0, false), { code: 'LEVEL_DATABASE_NOT_OPEN' })
  await store.open(location, {}, false)
  assert.throws(() => store.write(Buffer.alloc(1), 9, false), { code: 'LEVEL_INVALID_ARGUMENT' })
  await rejects(store.write(Buffer.from([1, 0, 0]), 3, false), 'LEVEL_INVALID_ARGUMENT')
  await rejects(store.getMany(Buffer.from([9, 0, 0, 0, 1]), 5), 'LEVEL_INVALID_ARGUMENT')
  assert.throws(() => store.scan(Buffer.from([1]), 1, false, 0), { code: 'LEVEL_INVALID_ARGUMENT' })
  assert.throws(() => store.write('text', 1, false))
  assert.throws(() => store.getSync(Buffer.from('a'), 1, true, {}))
  const scan = store.scan(Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 10, false, 0)
  scan.close()
  scan.close()
  await rejects(scan.read(1, 1), 'LEVEL_ITERATOR_NOT_OPEN')
  await store.close()
  await store.close()
})
