// `tokenmill key confirm ID`: the second operator confirms an act on keys for which another operator has asked. It does nothing
// to the key: the first operator runs the command of the act again.
import { CONFIRM, type ConfirmRefusal, confirmAct, findReason, isSigner } from '../../../src/acts/confirmation.ts'
import * as confirmations from '../../../src/store/access/confirmations.ts'
import type { JsonOption } from '../../command.ts'
import { confirm as askPerson } from '../../confirm.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, type Terminal } from '../../terminal.ts'
import { shownConfirmation } from './second-operator.ts'

type Options = JsonOption & OperatorOptions & { yes?: boolean }

const WHY_NOT: Record<ConfirmRefusal, string> = {
  unknown: 'No act waits under this id; it was mistyped, or expired more than an hour ago.',
  expired: 'It expired: the first operator runs the command again, and gets another id.',
  used: 'It was confirmed, and the act is done.',
  confirmed: 'It was confirmed before.',
  same_client: 'The operator who asked can not confirm: another client with the role ADMIN has to.',
  same_key:
    'This operator signs with the key of the one who asked: another person has to confirm, with a key of their own.',
}

export function confirm(terminal: Terminal, id: string, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const asked = await confirmations.find(vault.store, id)
    const reason = (await findReason(vault.store, id)) ?? null
    if (asked && !options.yes) await askPerson(terminal, question(asked, reason))
    const by = await byOf({ action: CONFIRM, subject: id }, options, vault.store, vault.ring)
    const { actor } = by
    if (!isSigner(actor))
      throw new Stop(
        'Add --operator FILE: the file of a client with the role ADMIN, not the one who asked.',
        EXIT.usage,
      )
    const ended = await confirmAct(vault, id, { ...by, actor })
    if ('refused' in ended) throw new Stop(WHY_NOT[ended.refused])
    const { done } = ended
    print(
      terminal,
      options,
      { ...shownConfirmation(done), reason },
      `${done.action} of ${done.subject} is confirmed. Until ${moment(done.expiresAt)} ${done.askedBy} may run the same command again.`,
    )
  })
}

function question({ action, subject, askedBy }: confirmations.Confirmation, reason: string | null): string {
  const why = reason === null ? 'without a reason' : `for this reason: ${JSON.stringify(reason)}`
  return `Confirm ${action} of ${subject}, which ${askedBy} asks for ${why}?`
}
