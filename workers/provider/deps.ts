// What the calls to card networks and third parties need beside the dependencies of every job.
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Schemes } from '../../src/scheme/open.ts'
import type { Deps } from '../deps.ts'

export interface ProviderDeps extends Deps {
  /** Undefined if no provider is set up. */
  providers: Providers | undefined
}

export interface Providers {
  schemes: Pick<Schemes, 'network' | 'named' | 'thirdParty'>
  /** The key of the system client `worker`, which signs reversals of jobs with failed provider calls. */
  signingKey: SigningKey
}
