import {
  AbstractBatchOptions,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions,
  AbstractBatchOperation,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractSnapshot
} from 'abstract-level'

/**
 * An abstract-level database over a Tamis store in a folder.
 *
 * @template KDefault The type of keys, unless a call has another encoding.
 * @template VDefault The type of values, unless a call has another encoding.
 */
export class TamisLevel<KDefault = string, VDefault = string>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  /**
   * Creates a database, which opens itself.
   *
   * @param location The folder, which is created if it is missing.
   * @param options Encodings, and the options of `open()`.
   */
  constructor (location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The folder. */
  get location (): string

  open (): Promise<void>
  open (options: OpenOptions): Promise<void>

  put (key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault> (key: K, value: V, options: AbstractPutOptions<K, V> & WriteOptions): Promise<void>

  del (key: KDefault): Promise<void>
  del<K = KDefault> (key: K, options: AbstractDelOptions<K> & WriteOptions): Promise<void>

  batch (operations: Array<AbstractBatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault> (
    operations: Array<AbstractBatchOperation<typeof this, K, V>>,
    options: AbstractBatchOptions<K, V> & WriteOptions
  ): Promise<void>
  batch (): ChainedBatch<typeof this, KDefault, VDefault>

  snapshot (options?: any | undefined): AbstractSnapshot

  /** Compacts the keys from `start` to `end` into the deepest level. */
  compactRange (start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault> (start: K, end: K, options: { keyEncoding?: unknown }): Promise<void>

  /** Changes the layout, the filters or `expireAfter`; later opens keep them. */
  setOptions (options: Pick<OpenOptions, 'layout' | 'filters'>): Promise<void>

  /** Counters since the open, and the state of log, cache and levels. */
  statistics (): Promise<Record<string, any>>

  /** Creates a consistent copy of the open database in a new or empty folder; returns a report. */
  checkpoint (location: string): Promise<Record<string, any>>

  /** Repairs a damaged database that is not open; returns a report with the ranges that may have lost writes. */
  static repair (location: string): Promise<Record<string, any>>
}

/** A batch to which operations are added one by one. */
export interface ChainedBatch<TDatabase, KDefault, VDefault> extends AbstractChainedBatch<TDatabase, KDefault, VDefault> {
  write (): Promise<void>
  write (options: AbstractChainedBatchWriteOptions & WriteOptions): Promise<void>
}

/** Options of the constructor. */
export interface DatabaseOptions<K, V> extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

/** Options of writes. */
export interface WriteOptions {
  /** Whether the write survives a crash of the machine when its promise resolves. Without it: a crash of the process. */
  sync?: boolean | undefined
}

/** A number of bytes, or a text such as `'64MiB'`. */
export type Bytes = number | string

/** Options of `open()`. Options of the data, from `memtableBytes` on, apply to a new database. */
export interface OpenOptions extends AbstractOpenOptions {
  /** Writes are refused. The database may be open in another process that writes; reads see its state at the open. */
  readOnly?: boolean | undefined
  /** Locks the folder, so that no other process or handle opens the database. Default: true. */
  lock?: boolean | undefined
  /** Memory for blocks, filters and indexes. Default: 256 MiB. */
  cacheBytes?: Bytes | undefined
  /** How tables are read. Default: mapped. */
  tableAccess?: 'mapped' | 'buffered' | 'direct' | undefined
  /** Threads for flushes and compactions. Default: 2. */
  workers?: number | undefined
  /** The size of the write-ahead log at which memtables are flushed. Default: 1 GiB. */
  logBytesMax?: Bytes | undefined
  /** The size of the log that stays for the change feed of programs in other languages. Default: 0. */
  keepChangesBytes?: Bytes | undefined
  /** The greatest age of the log that stays for the change feed. Default: any age. */
  keepChangesSeconds?: number | undefined
  /** The size of a memtable. Default: 64 MiB. */
  memtableBytes?: Bytes | undefined
  /** The size of a block. Default: 4 KiB. */
  blockBytes?: Bytes | undefined
  /** The size of a table. Default: 64 MiB. */
  tableBytes?: Bytes | undefined
  /** Compression by level: `none`, `lz4` or `zstd:LEVEL`, separated by commas. Default: none. */
  compression?: string | undefined
  /** Filters by level, such as `auto@16` or `blocked-bloom@10+surf@16`. Default: the store chooses. */
  filters?: string | undefined
  /** The layout: `leveled`, `tiered` or `partitioned`. */
  layout?: string | undefined
  /** The ratio of the sizes of two levels. */
  sizeRatio?: number | undefined
  /** The number of runs of level 0 at which they are compacted. */
  level0Runs?: number | undefined
  /** The age at which entries expire, such as `90s`, `12h` or `30d`, or `never`. Default: never. */
  expireAfter?: string | undefined
}
