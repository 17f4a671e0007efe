// The clients as which tokenmill's own processes send jobs. Each kind says which of them may sign it (kind-entry.ts).
export const SYSTEM_CLIENTS = ['gateway', 'scheduler', 'worker', 'console'] as const
export type SystemClient = (typeof SYSTEM_CLIENTS)[number]

export function isSystemClient(clientId: string): clientId is SystemClient {
  return (SYSTEM_CLIENTS as readonly string[]).includes(clientId)
}

/** Whether the client may send a job for another one (claim `client_id`). The console acts for people, never for a client. */
export function actsForClients(iss: string): boolean {
  return isSystemClient(iss) && iss !== 'console'
}

/**
 * The client whose results queue gets the answer. A system client gets the answers to its own requests, also when it
 * acts for another client.
 */
export function addresseeOf({ iss, clientId }: { iss: string; clientId: string }): string {
  return isSystemClient(iss) ? iss : clientId
}
