// The installation's keys that a client trusts: those of its file, and those that a trusted key announced in a signed
// statement. Announced keys are stored as the statements that announce them, beside the client's file, and verified
// again when they are read.
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ConfigError } from '../../src/config.ts'
import { editedText } from '../../src/edited-text.ts'
import { type LiveKeys, openLiveKeys, statementsOf } from '../../src/job/answer/live-keys.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { type KnownKeys, learnKeys } from '../../src/vault/key-statement.ts'
import { writeAtomically } from '../rows/atomic-file.ts'

const NewKeys = z.strictObject({ new_keys: z.array(z.string()) })

/** The file of the announced keys: `client.json` has `client.new-keys.json`. */
export function newKeysPath(clientFile: string): string {
  return `${clientFile.replace(/\.json$/, '')}.new-keys.json`
}

/** The stored statements; none if there is no file. Throws `ConfigError` for a file of another form. */
export async function readNewKeys(path: string): Promise<string[]> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    throw new ConfigError(`${path} can't be read (${code})`)
  }
  const text = editedText(bytes, (wrong, next) => new ConfigError(`${path} ${wrong}. ${next}`))
  const parsed = NewKeys.safeParse(parseJson(text))
  if (parsed.success) return parsed.data.new_keys
  throw new ConfigError(
    `${path} is not as this library writes it; take it from a backup, or remove it and use a new client file of the operator's`,
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface TrustedKeys {
  keys: InstallationKeys
  /** Takes over the keys that these statements announce, and stores them if there is a file. Never rejects. */
  renew(newKeys: readonly string[]): Promise<void>
  /** The `kid` of the newest key that is announced and whose planned time hasn't come at `now`, ms since the epoch. */
  announced(now: number): string | undefined
  /** Opens the list of live keys; undefined unless a trusted key signed it. */
  openList(jws: string): Promise<LiveKeys | undefined>
}

interface Given {
  audience: string
  installationKeys: InstallationKeys
  /** Where announced keys are stored, and the statements that are there; undefined: only in memory. */
  newKeys?: { file: string; statements: readonly string[] } | undefined
}

/** The most statements that are remembered, so that they aren't verified again. */
const KNOWN_MAX = 64

export function openTrustedKeys({ audience, installationKeys, newKeys: stored }: Given, log: Logger): TrustedKeys {
  const keys: KnownKeys = new Map(installationKeys)
  const { valid: before, last } = learnKeys(keys, stored?.statements ?? [], audience)
  const known = new Set(before)
  let newest = last
  let writing: Promise<void> = Promise.resolve()

  async function store(path: string, added: readonly string[]): Promise<void> {
    try {
      const all = [...new Set([...(await readNewKeys(path)), ...added])]
      await writeAtomically(path, `${JSON.stringify({ new_keys: all }, null, 2)}\n`)
    } catch (error) {
      // The process trusts the key all the same. After a restart it learns the key from the next result.
      log.warn({ path, error: describeError(error) }, 'an announced key of the installation was not stored')
    }
  }
  async function renew(newKeys: readonly string[]): Promise<void> {
    const unknown = newKeys.filter(jws => !known.has(jws))
    if (unknown.length === 0) return
    const { valid, added, last } = learnKeys(keys, unknown, audience)
    newest = last ?? newest
    for (const jws of valid) if (known.size < KNOWN_MAX) known.add(jws)
    if (added.length === 0) return
    log.info({ keys: [...keys.keys()] }, 'the installation announced a new key for its results')
    // One write at a time: each reads what the one before wrote.
    if (stored) writing = writing.then(() => store(stored.file, added))
    await writing
  }
  return {
    keys,
    renew,
    announced: now => (newest && newest.from > now ? newest.kid : undefined),
    async openList(jws) {
      const list = openLiveKeys(jws, audience, keys)
      const statements = list ? (list.new_keys ?? []) : statementsOf(jws)
      await renew(statements)
      return list ?? (statements.length > 0 ? openLiveKeys(jws, audience, keys) : undefined)
    },
  }
}
