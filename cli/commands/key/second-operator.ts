// For acts on keys that take two operators: a command asks for the second operator, and runs when it is called again
// after that operator has confirmed (`tokenmill key confirm`). The embedded engine, which one person runs for
// themselves, asks for none.
import type { By, Deed } from '../../../src/acts/act.ts'
import {
  askConfirmation,
  confirmationOf,
  isConfirmed,
  isSigner,
  NONE_NEEDED,
  type Signer,
  type UseConfirmation,
} from '../../../src/acts/confirmation.ts'
import type { Confirmation } from '../../../src/store/access/confirmations.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import type { OpenedVault } from '../../open/open.ts'
import { moment, print, type Terminal } from '../../terminal.ts'

export interface SecondOperator {
  /** For the act's transaction. */
  use: UseConfirmation
  /** Whether the act may begin. */
  isConfirmed(): Promise<boolean>
  /** Asks for a second operator and ends the command. */
  ask(terminal: Terminal, options: JsonOption): Promise<never>
}

type Vault = Pick<OpenedVault, 'store' | 'ring' | 'database'>

/** The act to confirm. `--backups-are-gone` is a part of it, so that the second operator sees that claim and vouches for it. */
export function claimed(deed: Deed, areBackupsGone: boolean): Deed {
  return areBackupsGone ? { ...deed, subject: `${deed.subject} --backups-are-gone` } : deed
}

/** Throws `Stop` if a second operator is needed and the first operator doesn't sign. */
export function secondOperatorOf(vault: Vault, deed: Deed, { actor, reason }: By): SecondOperator {
  if (vault.database.embedded)
    return { use: NONE_NEEDED, isConfirmed: async () => true, ask: () => Promise.reject(new Error('broken law: none')) }
  if (!isSigner(actor))
    throw new Stop(
      'This takes two operators, who sign: add --operator FILE, the file of a client with the role ADMIN; another one confirms.',
      EXIT.usage,
    )
  return {
    use: confirmationOf(vault.ring, deed, actor),
    isConfirmed: () => isConfirmed(vault.store, vault.ring, deed, actor),
    ask: (terminal, options) => ask(terminal, vault, { deed, actor, reason }, options),
  }
}

async function ask(
  terminal: Terminal,
  vault: Vault,
  { deed, actor, reason }: { deed: Deed; actor: Signer; reason: string | undefined },
  options: JsonOption,
): Promise<never> {
  const asked = await askConfirmation(vault, deed, { actor, reason })
  if (options.json) print(terminal, options, shownConfirmation(asked), '')
  throw new Stop(
    `Nothing was done yet: a second operator has to confirm it until ${moment(asked.expiresAt)}, with another client and key: \`tokenmill key confirm ${asked.id} --operator THEIR_FILE\`. Then run this command again.`,
    EXIT.unconfirmed,
  )
}

export function shownConfirmation(one: Confirmation) {
  return {
    confirmation: one.id,
    action: one.action,
    subject: one.subject,
    asked_by: one.askedBy,
    confirmed_by: one.confirmedBy,
    expires_at: moment(one.expiresAt),
  }
}
