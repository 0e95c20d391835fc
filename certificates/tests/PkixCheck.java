import java.io.FileInputStream;
import java.io.InputStream;
import java.security.cert.*;
import java.util.*;

/** Validates a chain with CRLs: ROOT LEAF [ISSUING …] -- CRL …; prints "valid" or "invalid: REASON". */
public class PkixCheck {
    public static void main(String[] paths) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        List<Certificate> chain = new ArrayList<>();
        List<CRL> crls = new ArrayList<>();
        X509Certificate root = null;
        boolean readingCrls = false;
        for (String path : paths) {
            if (path.equals("--")) {
                readingCrls = true;
                continue;
            }
            try (InputStream in = new FileInputStream(path)) {
                if (readingCrls) crls.add(factory.generateCRL(in));
                else if (root == null) root = (X509Certificate) factory.generateCertificate(in);
                else chain.add(factory.generateCertificate(in));
            }
        }
        PKIXParameters parameters = new PKIXParameters(Set.of(new TrustAnchor(root, null)));
        parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(crls)));
        parameters.setRevocationEnabled(!crls.isEmpty());
        try {
            CertPathValidator.getInstance("PKIX").validate(factory.generateCertPath(chain), parameters);
            System.out.println("valid");
        } catch (CertPathValidatorException error) {
            System.out.println("invalid: " + error.getReason());
        }
    }
}
