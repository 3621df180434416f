"""What several tests share: tiny studies, hand-made records, sample reports."""
