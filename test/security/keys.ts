// The keys of an installation, to search for: what opens cards, signs jobs and signs in.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unwrapKey } from '../../src/vault/ring/key-ring.ts'
import type { Installation } from '../support/installation.ts'
import type { Hit, Place } from './canary.ts'

/** A key by what it is, as bytes or as its text. */
export interface Key {
  name: string
  bytes: Buffer
}

const TEXTS = /"(d|k|api_key|p|q)"\s*:\s*"([\w+/=-]{16,})"/g

/** Data keys with what wraps them, and every secret member of the installation's files. */
export async function keysOf({ vault, dataDir }: Installation): Promise<Key[]> {
  const { rows } = await vault.store.query<Parameters<typeof unwrapKey>[1]>({
    text: `select purpose, version, wrapped, state, kek_id as "kekId" from tokenmill.data_key where wrapped is not null`,
  })
  const keys: Key[] = []
  for (const row of rows) {
    const name = `data key ${row.purpose}/${row.version}`
    const key = await unwrapKey(vault.keks, row)
    keys.push({ name, bytes: key.export() }, { name: `${name}, wrapped`, bytes: row.wrapped as Buffer })
  }
  for (const entry of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/(^kek|\.jwk|client\.json)$/.test(entry.name)) continue
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8')
    for (const [, member, value = ''] of text.matchAll(TEXTS))
      keys.push({
        name: `${entry.name}, ${member}`,
        bytes: Buffer.from(value, member === 'api_key' ? 'utf8' : 'base64url'),
      })
    if (entry.name === 'kek') {
      const encoded = text.trim().split(/\s+/).at(-1) ?? ''
      keys.push({ name: 'key-encryption key', bytes: Buffer.from(encoded, 'base64') })
    }
  }
  return keys
}

/** Every trace of these keys: as they are, in hex, in base64 and in base64url. The ends of base64 depend on what is beside them. */
export function findKeys(keys: readonly Key[], places: readonly Place[]): Hit[] {
  const needles = keys.flatMap(({ name, bytes }) => {
    const hex = bytes.toString('hex')
    const base64 = (['base64', 'base64url'] as const).map(as => ({
      as,
      needle: bytes.toString(as).replace(/.?=*$/, ''),
    }))
    const forms = [{ as: 'hex', needle: hex }, { as: 'HEX', needle: hex.toUpperCase() }, ...base64]
    return [...forms, { as: 'bytes', needle: bytes.toString('latin1') }].map(form => ({ canary: name, ...form }))
  })
  return places.flatMap(({ name: place, text }) =>
    needles.flatMap(({ canary, as, needle }) =>
      text.includes(needle) ? [{ canary, place, as, near: needle.slice(0, 4) }] : [],
    ),
  )
}
