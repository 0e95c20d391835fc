/** Checks of what others present: tokens, proofs, webhooks, receipts, status. */
export { NotValid, type Reason } from "../errors.js";
export { canonical } from "./canonical.js";
export { type Keys, type Origin, fetchedKeys, givenKeys } from "./jwt.js";
export { type PresentedProof, verifyProof } from "./proofs.js";
export { type ApprovedAct, type VerifiedApproval, verifyApprovalReceipt, verifyHaltReceipt } from "./receipts.js";
export { type CertificateStatus, checkCertificate } from "./status.js";
export { type Actor, type TokenRules, type VerifiedToken, verifyToken } from "./tokens.js";
export { type VerifiedWebhook, type WebhookRules, verifyWebhook } from "./webhooks.js";
