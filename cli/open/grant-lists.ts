// All rows of this product that grant rights, or say where something goes.
import { listContractGrants } from '../../src/acts/contract-grants.ts'
import { listEndpointGrants } from '../../src/acts/endpoint-grants.ts'
import { type ListGrants, listCoreGrants } from '../../src/acts/grants.ts'
import { listPersonGrants } from '../../src/acts/person-grants.ts'

export const GRANT_LISTS: readonly ListGrants[] = [
  listCoreGrants,
  listPersonGrants,
  listContractGrants,
  listEndpointGrants,
]
