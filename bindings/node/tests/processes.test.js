'use strict'

// Ends of processes and of worker threads: no crash, no lost write, no lock that stays.

const assert = require('node:assert/strict')
const path = require('node:path')
const test = require('node:test')
const { Worker } = require('node:worker_threads')
const { folder, open, run, runAndKill } = require('./support')

const location = t => path.join(folder(t), 'store')
const setup = `
  const { TamisLevel } = require('tamis-level')
  const db = new TamisLevel(process.argv[1])
  const fill = () => db.batch(Array.from({ length: 5000 }, (_, index) => ({ type: 'put', key: String(index), value: 'v' })))
`

const ends = {
  'the end of the program': '',
  'process.exit()': 'process.exit(0)',
  'process.exit() during reads and writes': `
    for (let index = 0; index < 500; index++) { db.put('a', 'b'); db.get('a') }
    iterators.map(iterator => iterator.next())
    process.exit(0)`,
  'process.exit() in a turn between': `
    iterators.map(iterator => iterator.nextv(1000))
    setImmediate(() => process.exit(0))`
}

for (const [name, end] of Object.entries(ends)) {
  test(`iterators, snapshots and a database that are open at ${name}`, async t => {
    const store = location(t)
    const program = `${setup}
      fill().then(async () => {
        const iterators = Array.from({ length: 20 }, () => db.iterator())
        for (const iterator of iterators) await iterator.next()
        globalThis.kept = [iterators, db.snapshot(), db.batch().put('x', 'y')]
        ${end}
      })`
    const { code, signal, stderr } = await run(program, store)
    assert.deepEqual([code, signal, stderr], [0, null, ''])
    const db = await open(t, {}, store)
    assert.ok((await db.keys().all()).length >= 5000)
  })
}

test('an uncaught exception during an iteration ends the process with its code', async t => {
  const program = `${setup}
    fill().then(async () => { for await (const [key] of db.iterator()) setImmediate(() => { throw new RangeError(key) }) })`
  const { code, signal, stderr } = await run(program, location(t))
  assert.deepEqual([code, signal], [1, null])
  assert.match(stderr, /RangeError: 0/)
})

test('a killed process loses no write whose promise has resolved', async t => {
  const store = location(t)
  const signal = await runAndKill(`${setup} fill().then(() => { console.log('written'); setInterval(() => {}, 1000) })`, store)
  assert.equal(signal, 'SIGKILL')
  const db = await open(t, {}, store)
  assert.equal((await db.keys().all()).length, 5000)
})

test('an open database does not keep the process alive', async t => {
  const { code } = await run(`${setup} db.open()`, location(t))
  assert.equal(code, 0)
})

/** A worker thread that runs a program; `db` is a database. Resolves with its messages and its exit code. */
function work (t, store, program, onMessage = () => {}) {
  const worker = new Worker(`
    const { parentPort, workerData } = require('node:worker_threads')
    const { TamisLevel } = require(workerData.module)
    const db = new TamisLevel(workerData.store)
    ;(async () => { ${program} })().catch(error => parentPort.postMessage({ code: error.cause?.code ?? error.code }))
  `, { eval: true, workerData: { store, module: path.join(__dirname, '..') } })
  t.after(() => worker.terminate())
  return new Promise((resolve, reject) => {
    const messages = []
    worker.on('message', message => { messages.push(message); onMessage(worker) })
    worker.once('error', reject)
    worker.once('exit', code => resolve({ messages, code }))
  })
}

test('worker threads use databases of their own at the same time', async t => {
  const program = `
    for (let round = 0; round < 20; round++) {
      await db.batch(Array.from({ length: 200 }, (_, index) => ({ type: 'put', key: round + '-' + index, value: 'v' })))
      await db.iterator({ limit: 500 }).all()
    }
    parentPort.postMessage((await db.keys().all()).length)
    await db.close()`
  const stores = Array.from({ length: 4 }, () => location(t))
  const db = await open(t)
  const done = Promise.all(stores.map(store => work(t, store, program)))
  for (let index = 0; index < 200; index++) await db.put(String(index), 'v')
  for (const { messages, code } of await done) assert.deepEqual([messages, code], [[4000], 0])
  assert.equal((await db.keys().all()).length, 200)
})

test('a worker thread cannot open the database of another thread, with an error that says so', async t => {
  const db = await open(t)
  const { messages } = await work(t, db.location, 'await db.open()')
  assert.deepEqual(messages, [{ code: 'LEVEL_LOCKED' }])
  await db.put('a', '1')
})

const stops = {
  'ends with open handles': '',
  'calls process.exit() during reads': 'for (const iterator of kept) iterator.nextv(1000); process.exit(0)',
  'is terminated during reads': "parentPort.postMessage('ready'); for (;;) await Promise.all([db.get('1'), db.put('a', 'b'), kept[0].db.keys({ limit: 9 }).all()])"
}

for (const [name, stop] of Object.entries(stops)) {
  test(`a worker thread that ${name} releases its database`, async t => {
    const store = location(t)
    const program = `
      await db.batch(Array.from({ length: 5000 }, (_, index) => ({ type: 'put', key: String(index), value: 'v' })))
      const kept = Array.from({ length: 20 }, () => db.iterator())
      for (const iterator of kept) await iterator.next()
      globalThis.kept = [kept, db.snapshot()]
      ${stop}`
    for (let round = 0; round < 3; round++) {
      const { messages } = await work(t, store, program, worker => worker.terminate())
      assert.deepEqual(messages, stop.includes('ready') ? ['ready'] : [])
    }
    const db = await open(t, {}, store)
    assert.ok((await db.keys().all()).length >= 5000)
  })
}
