// Checked by tsc: the types of the package as programs use them.

import { TamisLevel, OpenOptions } from 'tamis-level'

export async function main (): Promise<void> {
  const db = new TamisLevel('store', { cacheBytes: '64MiB', filters: 'auto@16', createIfMissing: true })
  await db.put('apple', 'red', { sync: true })
  const value: string | undefined = await db.get('apple')
  const same: string | undefined = db.getSync('apple')
  const bytes: Buffer | undefined = await db.get<string, Buffer>('apple', { valueEncoding: 'buffer' })
  await db.batch([{ type: 'put', key: 'pear', value: 'green' }, { type: 'del', key: 'apple' }], { sync: true })
  await db.batch().put('plum', 'blue').del('pear').write({ sync: true })
  for await (const [key, found] of db.iterator({ gte: 'a', lt: 'q', reverse: true, limit: 10 })) {
    const text: string = key + found
    console.log(text, value, same, bytes)
  }
  const fruit = db.sublevel<string, { price: number }>('fruit', { valueEncoding: 'json' })
  await fruit.put('apple', { price: 3 })
  const snapshot = db.snapshot()
  const old: string[] = await db.keys({ snapshot }).all()
  await snapshot.close()
  await db.compactRange('a', 'z')
  await db.setOptions({ layout: 'tiered' })
  const report: Record<string, unknown> = await db.checkpoint('copy')
  console.log(old, report, await db.statistics(), db.location)
  await db.close()

  const numbers = new TamisLevel<Uint8Array, number>('numbers', { keyEncoding: 'view', valueEncoding: 'json' })
  const number: number | undefined = await numbers.get(new Uint8Array(8))
  const options: OpenOptions = { readOnly: true, workers: 1 }
  await numbers.open(options)
  console.log(number, await TamisLevel.repair('store'))

  // @ts-expect-error: the location is a string
  console.log(new TamisLevel(1))
  // @ts-expect-error: there is no such option
  console.log(new TamisLevel('store', { cachBytes: 1 }))
  // @ts-expect-error: a value is missing
  await db.put('apple')
}
