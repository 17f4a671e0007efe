// `tokenmill manifest total-key` and `manifest sign-off`: the key of the total that both sides of a migration compute. It is
// made here, given to the sender encrypted, and destroyed when the migration is signed off.
import { makeTotalKey, totalKeyText } from '../../../producers/pack/total-key.ts'
import { writeAtomically } from '../../../producers/rows/atomic-file.ts'
import { handOutTotalKey, signOff as signOffAct, type TotalKeyRefusal } from '../../../src/acts/manifest.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { facts, print, say, type Terminal } from '../../terminal.ts'

interface KeyOptions extends JsonOption, OperatorOptions {
  migration: string
  to: string
  out: string
}

const REFUSED: Record<TotalKeyRefusal, string> = {
  no_key: 'No key was ever made for this migration; `tokenmill manifest total-key` makes one.',
  signed_off: 'This migration is signed off, and its key destroyed. A further migration gets a name of its own.',
}

export function totalKey(terminal: Terminal, options: KeyOptions): Promise<void> {
  const { migration, to, out } = options
  return withSession(terminal, async session => {
    const { encryptTo, readRecipient } = await import('../../../producers/rows/openpgp/recipient.ts')
    const recipient = await readRecipient(to)
    const { store, ring } = await openVault(session)
    const by = await byOf({ action: 'manifest.key.hand-out', subject: migration }, options, store, ring)
    await ring.reserve('manifest')
    const made = ring.sealTotalKey(makeTotalKey(), migration)
    const given = done(await handOutTotalKey(store, { migration, made, to: recipient.fingerprint }, by))
    const key = ring.openTotalKey(given.key.sealed, given.key.keyVersion, migration)
    await writeAtomically(out, await encryptTo(recipient, totalKeyText(key)))
    key.reveal().fill(0)
    const shown = {
      migration,
      key: given.isNew ? 'made now' : 'the one made before',
      encrypted_to: recipient.fingerprint,
    }
    const value = { migration, is_new: given.isNew, encrypted_to: recipient.fingerprint, file: out }
    print(terminal, options, value, facts({ ...shown, file: out }))
    say(terminal, 'Compare the fingerprint with the sender by another way than the one by which the key came.')
  })
}

export function signOff(
  terminal: Terminal,
  options: JsonOption & OperatorOptions & { migration: string },
): Promise<void> {
  const { migration } = options
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: 'manifest.key.destroy', subject: migration }, options, store)
    const { ended } = done(await signOffAct(store, migration, by))
    const text = `The key of ${migration} is destroyed: no total can be computed with it any more.`
    print(terminal, options, { migration, totals_ended: ended }, text)
  })
}

function done<Done>(verdict: { done: Done } | { refused: TotalKeyRefusal }): Done {
  if ('refused' in verdict) throw new Stop(REFUSED[verdict.refused])
  return verdict.done
}
