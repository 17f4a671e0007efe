// A process that runs the audit's sequencer alone, and kills itself at the moment that DIE_AT names: while it numbers rows
// (before the commit), before it sends a segment, or after that.
import { findAuditPlace } from '../../../cli/open/audit-place.ts'
import { openInstallationKey } from '../../../cli/open/installation-key.ts'
import { openSession, openVault } from '../../../cli/open/open.ts'
import { processTerminal } from '../../../cli/terminal.ts'
import { startSequencer } from '../../../workers/audit/sequencer.ts'

const dieAt = process.env['DIE_AT']
const die = (moment: string) => {
  if (moment === dieAt) process.kill(process.pid, 'SIGKILL')
}
const session = openSession(processTerminal(), 'test')
const vault = await openVault(session)
const key = await openInstallationKey(vault.store, vault.halves)
const place = await findAuditPlace(session)
startSequencer(
  {
    ...vault,
    signing: () => ({ key }),
    log: session.log,
    ring: {
      auditMacBy: vault.ring.auditMacBy,
      auditMac: hash => {
        die('numbering')
        return vault.ring.auditMac(hash)
      },
    },
    place: {
      ...place,
      async put(segment, lines) {
        die('before-put')
        await place.put(segment, lines)
        die('after-put')
      },
    },
  },
  { lookMs: 20 },
)
