// What a process on this host knows of the lives of the data keys: the stored row, the newest row that this data directory
// has seen, and what others have seen.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { describeError, type Logger } from '../../src/logger.ts'
import { BEAT } from '../../src/store/access/beat.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as keyLives from '../../src/store/access/key-lives.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import { keysOf, type LivesRow } from '../../src/vault/ring/key-lives.ts'
import type { WrappedKey } from '../../src/vault/ring/key-ring.ts'
import { type KeptLives, type KnownLives, openKnownLives } from '../../src/vault/ring/known-lives.ts'
import { jsonText, writePrivate } from './key-files.ts'

interface LivesOf {
  store: Db
  keks: Pick<Keks, 'find'>
  installationId: string
}

/** Goes by the stored row alone: for what looks at a database for a moment, and for a restored backup. */
export function storedLives({ store, keks, installationId }: LivesOf): KnownLives {
  return openKnownLives({ installationId, keks, load: () => keyLives.find(store) })
}

/** Never goes back behind what this host or others have seen. */
export function lastingLives({ store, keks, installationId }: LivesOf, dataDir: string, log: Logger): KnownLives {
  return openKnownLives({
    installationId,
    keks,
    load: () => keyLives.find(store),
    kept: keptLives(dataDir, installationId, log),
    floor: () => keyLives.findHighest(store, BEAT.deadMs),
  })
}

/** All keys, with their lives. Throws as `KnownLives.read`. */
export async function readKeys(store: Db, lives: KnownLives): Promise<WrappedKey[]> {
  return keysOf(await lives.read(), await dataKeys.findAll(store))
}

const KeptFile = z.object({
  installation: z.string(),
  epoch: z.int(),
  keys: z.string(),
  phase: z.string(),
  kek_id: z.string(),
  proof: z.base64(),
})

export const keptLivesPath = (dataDir: string) => join(dataDir, 'key-lives.json')

/** The file holds no secret. A process that can't write it goes on, and says so. */
export function keptLives(dataDir: string, installationId: string, log: Logger): KeptLives {
  const path = keptLivesPath(dataDir)
  const read = async (): Promise<LivesRow | undefined> => {
    const text = await readFile(path, 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    try {
      const { installation, kek_id: kekId, proof, ...row } = KeptFile.parse(JSON.parse(text))
      return installation === installationId ? { ...row, kekId, proof: Buffer.from(proof, 'base64') } : undefined
    } catch {
      return undefined
    }
  }
  return {
    read,
    write: async ({ epoch, keys, phase, kekId, proof }) => {
      const former = await read()
      if (former && former.epoch > epoch) return
      const file: z.infer<typeof KeptFile> = {
        installation: installationId,
        epoch,
        keys,
        phase,
        kek_id: kekId,
        proof: proof.toString('base64'),
      }
      await writePrivate(path, jsonText(file), { replace: true }).catch(error =>
        log.warn(
          { path, error: describeError(error) },
          'this host could not note what it knows of the lives of the data keys',
        ),
      )
    },
  }
}
