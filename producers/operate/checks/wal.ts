// The settings that decide how much WAL a card costs in a large store (docs/performance.md says what it costs). The embedded
// server's are tokenmill's own choice.
import * as storeServer from '../../../src/store/server.ts'
import { bytes, duration } from '../../../src/units.ts'
import { unknown, type Verdict, warning, well } from '../check.ts'
import type { ServerSources } from './servers.ts'

type Sources = Pick<ServerSources, 'store'> & { embedded: boolean }

const SIZE_MIN = 16 * 2 ** 30
const TIMEOUT_MS_MIN = 30 * 60_000
const SECTION = 'docs/running.md, WAL and checkpoints'
/** They take less processor time than the smaller WAL saves; PostgreSQL's own, pglz, takes more. */
const FAST = ['lz4', 'zstd']

export async function askWalSize(sources: Sources): Promise<Verdict> {
  const setting = await settingOf(sources, 'max_wal_size')
  if (setting?.unit !== 'MB') return SILENT
  const size = Number(setting.value) * 2 ** 20
  return sources.embedded ? well(bytes(size)) : judgeWalSize(size)
}

export function judgeWalSize(size: number): Verdict {
  if (size >= SIZE_MIN) return well(bytes(size))
  return warning(
    `${bytes(size)}: a large migration forces checkpoints and slows down`,
    `set it to ${bytes(SIZE_MIN)} or more before one (${SECTION})`,
  )
}

export async function askCheckpoints(sources: Sources): Promise<Verdict> {
  const setting = await settingOf(sources, 'checkpoint_timeout')
  if (setting?.unit !== 's') return SILENT
  const ms = Number(setting.value) * 1_000
  return sources.embedded ? well(duration(ms)) : judgeTimeout(ms)
}

export function judgeTimeout(ms: number): Verdict {
  if (ms >= TIMEOUT_MS_MIN) return well(duration(ms))
  return warning(
    `${duration(ms)}: after each checkpoint every page that a new card touches is written to the WAL in full`,
    `set it to ${duration(TIMEOUT_MS_MIN)} or more (${SECTION})`,
  )
}

export async function askWalCompression(sources: Sources): Promise<Verdict> {
  const setting = await settingOf(sources, 'wal_compression')
  return setting ? judgeCompression(setting) : SILENT
}

/** `choices`: those of this server; null before PostgreSQL 15, which compresses by pglz or not at all. */
export function judgeCompression({ value, choices }: Omit<storeServer.Setting, 'unit'>): Verdict {
  if (FAST.includes(value)) return well(value)
  const offered = FAST.filter(name => choices?.includes(name))
  if (offered.length > 0)
    return warning(`${value}, though this server has ${offered.join(' and ')}`, `set it to ${offered[0]} (${SECTION})`)
  if (value === 'off') return well('off; this server has neither lz4 nor zstd')
  return warning(`${value}: pglz takes more processor time than the smaller WAL saves`, `set it to off (${SECTION})`)
}

const SILENT = unknown('the server does not say it')

async function settingOf({ store }: Sources, name: string): Promise<storeServer.Setting | undefined> {
  return (await storeServer.readSettings(await store(), [name])).get(name)
}
