// When capture keys were last used, and by which client, as one process knows it. It is written at most once a minute,
// outside the transactions of jobs; a process that is killed loses its last minute.
import type { Clock } from '../../clock.ts'
import type { Logger } from '../../logger.ts'
import { every } from '../../recurring.ts'
import * as captureKeys from '../access/capture-keys.ts'
import type { Db } from '../pool.ts'

export interface CaptureUse {
  /** A card or a block of this client was decrypted with the key. */
  note(keyId: string, clientId: string): void
  /** Writes what was noted since the last call. */
  write(): Promise<void>
  close(): Promise<void>
}

const WRITE_MS = 60_000

export function openCaptureUse({ store, clock, log }: { store: Db; clock: Clock; log: Logger }): CaptureUse {
  let uses = new Map<string, captureKeys.KeyUse>()

  async function write(): Promise<void> {
    const written = uses
    uses = new Map()
    try {
      await captureKeys.noteUses(store, [...written.values()])
    } catch (error) {
      // Uses that couldn't be written are kept for the next call, unless a newer use of the key was noted meanwhile.
      uses = new Map([...written, ...uses])
      throw error
    }
  }
  const stop = every(WRITE_MS, write, { log })
  return {
    note: (keyId, clientId) => {
      uses.set(keyId, { keyId, clientId, at: clock() })
    },
    write,
    close: async () => {
      await stop()
      // The store may be away; then the last minute is lost, as after a kill.
      await write().catch(() => {})
    },
  }
}
